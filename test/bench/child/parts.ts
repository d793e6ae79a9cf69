/** What a delivery costs in a loop, by part: everything is in the caches, and nothing but this runs. Prints JSON. */
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
import type { Scheme } from "../protocol.ts";
import type { PartFigures } from "../results.ts";
import { inlineCheck } from "./inline.ts";

const COUNT = 4_000;
const ROUNDS = 10;
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

const listOf = <T>(make: () => T): readonly T[] => Array.from({ length: COUNT }, make);
const deliveries: Readonly<Record<Scheme, readonly SignedDelivery[]>> = {
  rsa: listOf(() => signPaymentCallback(callbackFields(), keys.privateKey)),
  hmac: listOf(() => signConnectWebhook(connectEvent(), surroundings.secret)),
};

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

function measureSignature(scheme: Scheme): Promise<number> {
  if (scheme === "hmac") {
    return measure(deliveries.hmac, ({ rawBody }) =>
      createHmac("sha256", secretKey).update(rawBody).digest("hex"),
    );
  }
  const signed = deliveries.rsa.map(({ rawBody }) => {
    const fields = JSON.parse(Buffer.from(rawBody).toString("utf8")) as Record<string, string>;
    return {
      canonical: Buffer.from(canonicalString(fields)),
      signature: Buffer.from(fields.signature ?? "", "base64"),
    };
  });
  return measure(signed, ({ canonical, signature }) => verify("sha256", canonical, publicKey, signature));
}

function measureByHand(scheme: Scheme): Promise<number> {
  const check = inlineCheck("inline", scheme, surroundings, async () => {});
  const sent = deliveries[scheme].map(({ rawBody, headers }) => ({
    body: Buffer.from(rawBody),
    signature: headers["x-connect-signature"],
  }));
  return measure(sent, ({ body, signature }) => check(body, signature));
}

async function measureReceiver(scheme: Scheme, options: Pick<ReceiverOptions, "run">): Promise<number> {
  let handled = 0;
  const handle = async (): Promise<void> => void handled++;
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret: surroundings.secret },
    inbox: memoryInbox(),
    logger: { info: () => {}, warn: () => {}, error: () => {} },
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
  const figure = await measure(deliveries[scheme], accept, () => !runs || handled === COUNT);
  if (runs) await receiver.close({ graceMs: 1_000 });
  return figure;
}

const parts: Readonly<Record<PartFigures["part"], (scheme: Scheme) => Promise<number>>> = {
  signature: measureSignature,
  byHand: measureByHand,
  accepted: (scheme) => measureReceiver(scheme, { run: "elsewhere" }),
  handled: (scheme) => measureReceiver(scheme, {}),
};

const found: PartFigures[] = [];
for (const scheme of ["rsa", "hmac"] as const) {
  for (const part of Object.keys(parts) as PartFigures["part"][]) {
    found.push({ scheme, part, cpuUs: Number.POSITIVE_INFINITY });
  }
}
for (let round = 0; round < ROUNDS; round++) {
  for (const [at, one] of found.entries()) {
    globalThis.gc?.();
    // The least: what else the machine does can only add to it.
    const cpuUs = Math.min(one.cpuUs, await parts[one.part](one.scheme));
    found[at] = { ...one, cpuUs };
  }
}
console.log(JSON.stringify(found));
