import { CALLBACK_FIELDS, importPublicKeys } from "@payhooks/core/signature";
import type { Verification } from "../../../packages/core/src/flows/flow.ts";
import { fixedKeyring } from "../../../packages/core/src/flows/keyring.ts";
import { paymentsFlow } from "../../../packages/core/src/flows/payments.ts";
import { ANSWER_STATUS, type DeliveryErrorCode } from "../../../packages/core/src/protocol/errors.ts";
import { systemClock } from "../../../packages/core/src/time/clock.ts";
import { type Answer, Wire } from "../../e2e/wire.ts";
import {
  agreementOf,
  type Body,
  canonicalOf,
  findDifference,
  type Given,
  genuineOf,
  SETTINGS,
} from "../oracle.ts";
import { Random } from "../random.ts";
import { type Attempt, attempt, type PATHS } from "./mutations.ts";
import {
  KEYS,
  makeWebhooks,
  NOW,
  type Signed,
  type SignedCallback,
  signCallbacks,
  webhookSignature,
} from "./signed.ts";
import type { Target } from "./targets.ts";

/** The results of a number of attempts. */
export interface Tally {
  readonly tried: number;
  /** Events that were run, or taken for authentic, though the service has not said that. */
  readonly forged: readonly string[];
  /** Answers that are not in the table, or none, or a genuine delivery refused. */
  readonly broken: readonly string[];
  /** How often each answer was given. */
  readonly answers: ReadonlyMap<string, number>;
}

/** Answers that a hostile sender may get. Not among them: whatever says that something went wrong in the receiver. */
const CODES: readonly DeliveryErrorCode[] = [
  "ERR_METHOD_NOT_ALLOWED",
  "ERR_CONTENT_TYPE",
  "ERR_CONTENT_ENCODING",
  "ERR_BODY_TOO_LARGE",
  "ERR_BODY_NOT_JSON",
  "ERR_SIGNATURE_MISSING",
  "ERR_SIGNATURE_MALFORMED",
  "ERR_SIGNATURE_INVALID",
  "ERR_TIMESTAMP_EXPIRED",
  "ERR_TIMESTAMP_FUTURE",
];

function tableOf(flow: keyof typeof PATHS): ReadonlySet<string> {
  const refusals = CODES.map((code) => {
    const signature = code.startsWith("ERR_SIGNATURE_");
    const status = signature && flow === "connect" ? 400 : ANSWER_STATUS[code];
    return `${status} {"error":{"code":"${code}"}}`;
  });
  return new Set(['200 {"received":true}', ...refusals]);
}

const TABLES = { payments: tableOf("payments"), connect: tableOf("connect") } as const;

/** The answer to a request whose framing is broken: the body ended before its length, or the server's parser refused it. */
const INCOMPLETE = '400 {"error":{"code":"ERR_BODY_INCOMPLETE"}}';
const REFUSED_BY_PARSER: ReadonlySet<number> = new Set([400, 413, 431]);

const CONNECTIONS = 8;

const NO_LIMIT = Number.POSITIVE_INFINITY;
/** The rules of the receiver under test for callbacks: none. */
const [, RULES] = SETTINGS[0] as (typeof SETTINGS)[number];

/** A receiver's flow of callbacks, with keys that are imported once: that takes longer than verifying. */
const CALLBACKS = paymentsFlow(
  { publicKey: undefined },
  { windowMs: NO_LIMIT, acceptTimeoutMs: NO_LIMIT, maxResolving: NO_LIMIT, clock: systemClock },
  fixedKeyring(importPublicKeys(KEYS.publicKey)),
);

/** All that is answered to bytes that are the last of their connection, which the server then has to close. */
async function alone(port: number, bytes: Uint8Array): Promise<readonly Answer[]> {
  const wire = await Wire.open(port);
  try {
    void wire.write(bytes);
    wire.end();
    await wire.closed;
    const given: Answer[] = [];
    while (wire.rest !== "") given.push(await wire.answer());
    return given;
  } finally {
    wire.destroy();
  }
}

/** Signed deliveries of a seed, and the attempts that are made of them. */
export class Fuzzer {
  readonly #seed: number;
  readonly #signed: readonly Signed[];
  readonly #callbacks: ReadonlyMap<string, SignedCallback>;
  readonly #agreed = new Map<string, Given>();

  constructor(seed: number) {
    this.#seed = seed;
    const random = new Random(seed);
    const callbacks = signCallbacks(120, random);
    this.#signed = [...callbacks, ...makeWebhooks(60, random)];
    this.#callbacks = new Map(callbacks.map((one) => [one.fields.payTxnId ?? "", one]));
  }

  /** The attempt with a number. */
  attempt(number: number): Attempt {
    return attempt(this.#signed, new Random(Math.imul(this.#seed, 0x9e3779b1) ^ number));
  }

  /** Makes the attempts from a number on, over connections that are kept open. */
  async run(target: Target, from: number, count: number): Promise<Tally> {
    const forged: string[] = [];
    const broken: string[] = [];
    const answers = new Map<string, number>();
    let next = from;
    const lane = async (): Promise<void> => {
      let wire: Wire | null = null;
      while (next < from + count) {
        const number = next++;
        const tried = this.attempt(number);
        const what = (text: string): string =>
          `seed ${this.#seed}, number ${number}: ${text} (${tried.done.join(", ")})`;
        try {
          let given: readonly Answer[];
          if (tried.framingBroken) given = await alone(target.port, tried.bytes);
          else {
            wire ??= await Wire.open(target.port);
            void wire.write(tried.bytes);
            const answer = await wire.answer({ bodiless: tried.method === "HEAD" });
            given = [answer];
            if (answer.headers.get("connection") === "close") {
              wire.destroy();
              wire = null;
            }
          }
          for (const { status, body } of given) {
            const shown = `${status} ${body}`.trim();
            answers.set(shown, (answers.get(shown) ?? 0) + 1);
          }
          const wrong = this.#judge(tried, given);
          if (wrong !== null) broken.push(what(wrong));
          const lie = given.some(({ status }) => status === 200) ? this.#lieIn(tried) : null;
          if (lie !== null) forged.push(what(lie));
        } catch (error) {
          broken.push(what(`no answer: ${error instanceof Error ? error.message : String(error)}`));
          wire?.destroy();
          wire = null;
        }
      }
      wire?.destroy();
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, lane));
    // Handlers of the last ones run in the turns after their answers.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    forged.push(...this.#liesRun(target));
    return { tried: count, forged, broken, answers };
  }

  #judge(tried: Attempt, given: readonly Answer[]): string | null {
    const shown = given.map(({ status, body }) => `${status} ${body}`.trim());
    if (tried.framingBroken) return this.#judgeBroken(tried, given);
    if (tried.genuine && given[0]?.status !== 200) return `a genuine delivery was answered ${shown}`;
    if (tried.method === "HEAD") return given[0]?.status === 405 ? null : `HEAD was answered ${shown}`;
    return shown.every((one) => TABLES[tried.to].has(one))
      ? null
      : `the answer ${shown} is not in the table of ${tried.to}`;
  }

  /** Each request in the bytes is answered from the table; the parser's refusal can only be the last word. */
  #judgeBroken({ to }: Attempt, given: readonly Answer[]): string | null {
    for (const [at, { status, body }] of given.entries()) {
      const shown = `${status} ${body}`.trim();
      const last = at === given.length - 1;
      if (TABLES[to].has(shown) || shown === INCOMPLETE) continue;
      if (!last || !REFUSED_BY_PARSER.has(status)) return `the answer ${shown} is not in the table of ${to}`;
    }
    const accepted = given.filter(({ status }) => status === 200).length;
    return accepted > 1 ? `one delivery was acknowledged ${accepted} times` : null;
  }

  /** The lie in a body that was answered 200, or null. */
  #lieIn({ origin, to, body, headers }: Attempt): string | null {
    if (body === null) return "a delivery was accepted whose bytes do not say where it ends";
    if (to === "connect") {
      const names = headers.filter(([name]) => name.toLowerCase() === "x-connect-signature");
      const [[, claimed] = ["", ""]] = names;
      return names.length === 1 && claimed.trim() === webhookSignature(body)
        ? null
        : "a webhook was accepted that is not signed";
    }
    const delivery = { method: "POST", url: "/", headers: { get: () => null }, rawBody: body };
    const verification = CALLBACKS.verify(delivery, NOW) as Verification;
    if (!verification.ok) return `a callback of ${origin.flow} was accepted: ${verification.why}`;
    const { event, verified } = verification.reading;
    // Authentic, and held: nothing of it is believed.
    return event === null || verified.verdict !== "run" ? null : this.#differenceOf(event as unknown as Body);
  }

  #liesRun({ ran, notices }: Target): string[] {
    const lies: string[] = [];
    for (const event of ran) {
      if ("idempotency_key" in event) continue; // over its bytes, by the HMAC
      const lie = this.#differenceOf(event as unknown as Body);
      if (lie !== null) lies.push(`a handler was run: ${lie}`);
    }
    for (const notice of notices) {
      // Two bodies of one payTxnId that both count as certain, and differ: one of them was not sent.
      const differs = notice.type === "held" && notice.flow === "payments";
      if (differs && (notice.reason === "mismatch" || notice.reason === "conflict")) {
        lies.push(`${notice.id} was taken for authentic, with other facts: ${notice.reason}`);
      }
    }
    ran.length = 0;
    notices.length = 0;
    return lies;
  }

  #differenceOf(event: Body): string | null {
    const sent = this.#callbacks.get(event.payTxnId ?? "");
    if (sent === undefined) return `nothing was sent with payTxnId ${JSON.stringify(event.payTxnId)}`;
    const odd = CALLBACK_FIELDS.find((name) => event[name] != null && typeof event[name] !== "string");
    if (odd !== undefined) return `${odd} is no text`;
    if (Object.keys(event.extra ?? {}).length > 0) return "it has a field that was not declared";
    const given = Object.fromEntries(
      CALLBACK_FIELDS.flatMap((name) => (event[name] == null ? [] : [[name, event[name]]])),
    );
    const name = findDifference(given, sent.fields);
    if (name !== null)
      return `${name} is ${JSON.stringify(event[name])}, not ${JSON.stringify(sent.fields[name])}`;
    const agreed = this.#agreedOf(sent.fields);
    if (typeof agreed === "string") return `what was signed for ${event.payTxnId} is ${agreed}`;
    const lost = Object.keys(agreed).find((field) => given[field] === undefined);
    if (lost !== undefined) return `${lost} is left out, although every reading has it`;
    const doubtful = Object.keys(given).find((field) => agreed[field] === undefined);
    return doubtful === undefined ? null : `${doubtful} is handed on, although not every reading has it`;
  }

  /** The facts on which all readings of a callback's signed string agree. */
  #agreedOf(fields: Body): Given {
    const canonical = canonicalOf(fields);
    let agreed = this.#agreed.get(canonical);
    if (agreed === undefined) {
      agreed = agreementOf(genuineOf(canonical, RULES), RULES);
      this.#agreed.set(canonical, agreed);
    }
    return agreed;
  }
}
