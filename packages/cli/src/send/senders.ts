import { type SourceSigner, signers } from "@payhooks/core/testing";
import { UsageError } from "../command-line/errors.ts";
import type { PreparedDelivery } from "./deliveries.ts";

/** The senders whose events can be signed, by their names on the command line. */
const SENDERS: Readonly<Record<string, (secret: string) => SourceSigner>> = {
  "standard-webhooks": (secret) => signers.standardWebhooks({ secret }),
  svix: (secret) => signers.standardWebhooks({ secret, headers: "svix" }),
  stripe: (secret) => signers.stripe({ secret }),
  github: (secret) => signers.github({ secret }),
  shopify: (secret) => signers.shopify({ secret }),
  paystack: (secret) => signers.paystack({ secret }),
  slack: (secret) => signers.slack({ secret }),
};

/** Their names. */
export const SENDER_NAMES: readonly string[] = Object.keys(SENDERS);

/** Those whose signatures cover no time. */
const TIMELESS_SENDERS: ReadonlySet<string> = new Set(["github", "shopify", "paystack"]);

/** Those that send the event's name in a header, with what a header can hold. */
const SENDERS_WITH_NAME_IN_HEADER: ReadonlySet<string> = new Set(["github", "shopify"]);
const HEADER_NAME_PATTERN = /^[\x21-\x7e]+$/;

/** The delivery to send for a sender. */
export interface SenderOptions {
  readonly sender: string;
  readonly name: string;
  /** JSON. */
  readonly data: string;
  readonly events: number;
  readonly times: number;
  readonly forge: string | undefined;
  readonly isStale: boolean;
  readonly seed: number;
}

const STALE_AGE_MS = 30 * 24 * 60 * 60 * 1000;

/** Signs events of a sender. Each has the data that was given, and an id of its own. */
export function prepareSenderDeliveries(
  options: SenderOptions,
  secret: string,
  now: number,
): readonly PreparedDelivery[] {
  const { sender, name, events, times, forge, isStale, seed } = options;
  const make = SENDERS[sender];
  if (make === undefined) throw new UsageError(`There is no sender ${sender}.`);
  if (forge !== undefined && forge !== "signature") {
    throw new UsageError(`--forge ${forge} is for payments.`, "For a sender, use --forge signature.");
  }
  if (isStale && TIMELESS_SENDERS.has(sender))
    throw new UsageError(`A signature of ${sender} covers no time, so nothing is stale.`);
  if (SENDERS_WITH_NAME_IN_HEADER.has(sender) && !HEADER_NAME_PATTERN.test(name)) {
    throw new UsageError(
      `--name of ${sender} is sent in a header, and must be ASCII without spaces; it is ${JSON.stringify(name)}.`,
    );
  }
  const signer = make(secret);
  const data = dataIn(options.data);
  const signedAt = new Date(isStale ? now - STALE_AGE_MS : now);
  return Array.from({ length: events }, (_, index) => `evt_${seed}_${index + 1}`).flatMap((id) => {
    const signed = signer(name, { id, ...data }, { id, at: signedAt });
    const rawBody = forge === undefined ? signed.rawBody : Buffer.concat([signed.rawBody, Buffer.from(" ")]);
    const delivery = { ...signed, rawBody };
    return Array.from({ length: times }, () => ({
      label: `${sender} ${name} ${id}`,
      id,
      status: "",
      delivery,
    }));
  });
}

function dataIn(text: string): object {
  try {
    const data: unknown = JSON.parse(text);
    if (typeof data === "object" && data !== null && !Array.isArray(data)) return data;
  } catch {
    // Text that is not JSON is refused like JSON of another kind.
  }
  throw new UsageError("--data is not a JSON object.", `Give one in quotes: --data '{"amount":5}'.`);
}
