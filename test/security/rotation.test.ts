import { createReceiver, memoryInbox, type Notice } from "@payhooks/core";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import { silent } from "../support/silent.ts";
import { lengthOf, report, TIMEOUT_MS } from "./report.ts";

const old = createTestKeys();
const next = createTestKeys();
const stranger = createTestKeys();
const [OLD, NEXT] = ["whsec_old_0123456789abcdef", "whsec_next_0123456789abcdef"];

/** All deliveries are under way at once, so the last one waits for all others. That is no reason to answer it with 503 here. */
const NO_HURRY_MS = 60_000;

type Sent = readonly [flow: "payments" | "connect", delivery: SignedDelivery];
const payment = ({ privateKey }: { privateKey: string }): Sent => [
  "payments",
  signPaymentCallback(callbackFields(), privateKey),
];
const webhook = (secret: string): Sent => ["connect", signConnectWebhook(connectEvent(), secret)];

/** The process of one deployment: it has the keys of one step of a rotation. */
function deploy(publicKeys: readonly string[], secrets: readonly string[]) {
  const notices: Notice[] = [];
  const receiver = createReceiver({
    payments: { publicKey: publicKeys },
    connect: { secret: secrets },
    inbox: memoryInbox(),
    run: "elsewhere",
    limits: { maxInFlight: 100_000, acceptTimeoutMs: NO_HURRY_MS },
    logger: silent,
  });
  receiver.observe((notice) => notices.push(notice));
  const send = async ([flow, { rawBody, headers }]: Sent): Promise<number> =>
    (
      await receiver[flow].receive({
        method: "POST",
        url: "/",
        headers: { get: (name) => headers[name] ?? null },
        rawBody,
      })
    ).status;
  return { send, notices, close: () => receiver.close({ graceMs: 0 }) };
}

describe("a rotation under load", { timeout: TIMEOUT_MS }, () => {
  const rounds = lengthOf(25, 300);
  let tried = 0;
  let forged = 0;
  afterAll(() =>
    report({ proof: "rotation under load", cases: tried, forged, note: "no genuine delivery refused" }),
  );

  /** Each step as old and new processes see it, side by side, and what the service signs with meanwhile. */
  const STEPS = [
    { step: "before", keys: [[old], [old]], signs: [old] },
    { step: "the new key is being deployed", keys: [[old], [old, next]], signs: [old] },
    {
      step: "the service changes over",
      keys: [
        [old, next],
        [next, old],
      ],
      signs: [old, next],
    },
    { step: "the old key is being removed", keys: [[old, next], [next]], signs: [next] },
    { step: "after", keys: [[next], [next]], signs: [next] },
  ] as const;
  const secretOf = (keys: unknown): string => (keys === old ? OLD : NEXT);

  it.each(STEPS)("$step: no genuine delivery is refused, and no other accepted", async ({ keys, signs }) => {
    const deployed = keys.map((list) =>
      deploy(
        list.map(({ publicKey }) => publicKey),
        list.map(secretOf),
      ),
    );
    const genuine: Promise<number>[] = [];
    const others: Promise<number>[] = [];
    for (let round = 0; round < rounds; round++) {
      for (const { send } of deployed) {
        for (const pair of signs) genuine.push(send(payment(pair)), send(webhook(secretOf(pair))));
        others.push(send(payment(stranger)), send(webhook("whsec_stranger_0123456789")));
      }
    }
    const answers = await Promise.all(genuine);
    const refused = await Promise.all(others);
    tried += answers.length + refused.length;
    forged += refused.filter((status) => status === 200).length;
    expect(answers.filter((status) => status !== 200)).toEqual([]);
    expect(new Set(refused)).toEqual(new Set([400, 401]));
    await Promise.all(deployed.map(({ close }) => close()));
  });

  it("a key that was removed is refused from then on", async () => {
    const after = deploy([next.publicKey], [NEXT]);
    expect(await after.send(payment(old))).toBe(401);
    expect(await after.send(webhook(OLD))).toBe(400);
    expect(await after.send(payment(next))).toBe(200);
    await after.close();
  });

  it("a resolver's keys may change while deliveries are on their way", async () => {
    let keys: readonly string[] = [old.publicKey];
    const statuses: number[] = [];
    const receiver = createReceiver({
      payments: {
        publicKey: async ({ merchantId }) => {
          await new Promise((resolve) => setImmediate(resolve));
          return { tenant: "m", keys: merchantId === "unknown" ? [] : keys };
        },
      },
      // All merchants are new at once here, and none of them is to be put off.
      limits: { maxResolving: 1_000, acceptTimeoutMs: NO_HURRY_MS },
      inbox: memoryInbox(),
      run: "elsewhere",
      logger: silent,
    });
    const send = async (pair: { privateKey: string }, merchantId: string): Promise<void> => {
      const { rawBody, headers } = signPaymentCallback(callbackFields({ merchantId }), pair.privateKey);
      const get = (name: string): string | null => headers[name] ?? null;
      const { status } = await receiver.payments.receive({
        method: "POST",
        url: "/",
        headers: { get },
        rawBody,
      });
      statuses.push(status);
    };
    const sending: Promise<void>[] = [];
    for (let round = 0; round < rounds; round++) sending.push(send(old, `m-${round}`));
    keys = [old.publicKey, next.publicKey];
    for (let round = 0; round < rounds; round++) {
      sending.push(send(old, `n-${round}`), send(next, `n-${round}`));
    }
    await Promise.all(sending);
    tried += statuses.length;
    expect(statuses).toHaveLength(rounds * 3);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    await receiver.close({ graceMs: 0 });
  });
});
