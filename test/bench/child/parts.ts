/** The cost of a delivery in a loop, by part: everything is in the caches, and nothing but this runs. Prints JSON. */
import { createHmac, createPublicKey, createSecretKey, verify } from "node:crypto";
import { createReceiver, memoryInbox, type ReceiverOptions } from "@payhooks/core";
import { canonicalString } from "@payhooks/core/signature";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { silent } from "../../support/silent.ts";
import type { Scheme } from "../protocol.ts";
import type { PartFigures } from "../results.ts";
import { inlineCheck } from "./inline.ts";

const COUNT = 2_000;
const ROUNDS = 12;
/** Off the path of a delivery, its handlers run: so many deliveries come between. */
const AT_ONCE = 4;

const keys = createTestKeys();
const surroundings = {
  publicKey: keys.publicKey,
  secret: "whsec_bench_0123456789abcdef",
  redisUrl: null,
  nextApp: null,
  peers: null,
};
const publicKey = createPublicKey(keys.publicKey);
const secretKey = createSecretKey(Buffer.from(surroundings.secret));

type Deliveries = readonly SignedDelivery[];

/** Events that nobody has seen yet. */
function newDeliveries(scheme: Scheme): Deliveries {
  return Array.from({ length: COUNT }, () =>
    scheme === "rsa"
      ? signPaymentCallback(callbackFields(), keys.privateKey)
      : signConnectWebhook(connectEvent(), surroundings.secret),
  );
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Microseconds of processor time for each of them, until what they began is over. */
async function measure<T>(
  list: readonly T[],
  call: (one: T) => unknown,
  isOver: () => boolean = () => true,
): Promise<number> {
  const from = process.cpuUsage();
  for (let i = 0; i < COUNT; i += AT_ONCE) {
    await Promise.all(list.slice(i, i + AT_ONCE).map(async (one) => call(one)));
    await turn();
  }
  while (!isOver()) await turn();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / COUNT;
}

/** Measures one part of the way of these deliveries. What it runs on lives through all rounds, as a merchant's does. */
type Part = (deliveries: Deliveries) => Promise<number>;

function signaturePart(scheme: Scheme): Part {
  if (scheme === "hmac") {
    return (deliveries) =>
      measure(deliveries, ({ rawBody }) => createHmac("sha256", secretKey).update(rawBody).digest("hex"));
  }
  return (deliveries) => {
    const signed = deliveries.map(({ rawBody }) => {
      const fields = JSON.parse(Buffer.from(rawBody).toString("utf8")) as Record<string, string>;
      return {
        canonical: Buffer.from(canonicalString(fields)),
        signature: Buffer.from(fields.signature ?? "", "base64"),
      };
    });
    return measure(signed, ({ canonical, signature }) => verify("sha256", canonical, publicKey, signature));
  };
}

function byHandPart(scheme: Scheme): Part {
  const check = inlineCheck("inline", scheme, surroundings, async () => {});
  return (deliveries) => {
    const sent = deliveries.map(({ rawBody, headers }) => ({
      body: Buffer.from(rawBody),
      signature: headers["x-connect-signature"],
    }));
    return measure(sent, ({ body, signature }) => check(body, signature));
  };
}

async function receiverPart(scheme: Scheme, options: Pick<ReceiverOptions, "run">): Promise<Part> {
  let handled = 0;
  const handle = async (): Promise<void> => void handled++;
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret: surroundings.secret },
    inbox: memoryInbox(),
    logger: silent,
    ...options,
  });
  receiver.onDeposit(handle).onSettlementApproved(handle);
  await receiver.start();
  const { receive } = scheme === "rsa" ? receiver.payments : receiver.connect;
  const accept = async ({ rawBody, headers }: SignedDelivery): Promise<void> => {
    const get = (name: string): string | null => headers[name] ?? null;
    const { status } = await receive({ method: "POST", url: "/", headers: { get }, rawBody });
    if (status !== 200) throw new Error(`answered ${status}`);
  };
  const runs = options.run === undefined;
  return async (deliveries) => {
    const all = handled + COUNT;
    const figure = await measure(deliveries, accept, () => !runs || handled === all);
    if (!runs) await receiver.work({ deadlineMs: 60_000, limit: COUNT });
    return figure;
  };
}

const found: { scheme: Scheme; part: PartFigures["part"]; measure: Part; cpuUs: number }[] = [];
for (const scheme of ["rsa", "hmac"] as const) {
  const parts: Readonly<Record<PartFigures["part"], Part>> = {
    signature: signaturePart(scheme),
    byHand: byHandPart(scheme),
    accepted: await receiverPart(scheme, { run: "elsewhere" }),
    handled: await receiverPart(scheme, {}),
  };
  for (const [part, measured] of Object.entries(parts)) {
    const name = part as PartFigures["part"];
    found.push({ scheme, part: name, measure: measured, cpuUs: Number.POSITIVE_INFINITY });
  }
}
for (let round = 0; round < ROUNDS; round++) {
  const deliveries = { rsa: newDeliveries("rsa"), hmac: newDeliveries("hmac") };
  for (const one of found) {
    const cpuUs = await one.measure(deliveries[one.scheme]);
    // The least: everything else is what the machine did beside it.
    one.cpuUs = Math.min(one.cpuUs, cpuUs);
  }
}
const figures: readonly PartFigures[] = found.map(({ scheme, part, cpuUs }) => ({ scheme, part, cpuUs }));
process.stdout.write(JSON.stringify(figures), () => process.exit());
