import { inspect } from "node:util";
import { createClient } from "@payhooks/client";
import {
  type AnyEvent,
  createReceiver,
  memoryInbox,
  type Notice,
  verifyConnectWebhook,
  verifyPaymentCallback,
} from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  forgedCallback,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { createSandbox } from "@payhooks/sandbox";
import { describe, expect, it } from "vitest";

const keys = createTestKeys();
const CANARY = {
  webhookSecret: "CANARY-webhook-secret-0123456789",
  redisPassword: "CANARY-redis-password",
  clientSecret: "CANARY-client-secret",
  apiKey: "CANARY-api-key",
  /** A line from the middle of the private key. */
  privateKey: keys.privateKey.split("\n")[5] ?? "",
} as const;

/** Every way in which an object comes to be text, by a logger or by hand. */
function textsOf(value: unknown): string[] {
  const error = value instanceof Error ? [value.stack ?? "", value.message, textsOf(value.cause).join()] : [];
  const shown = inspect(value, { depth: 30, showHidden: true, getters: true });
  return [shown, ...[JSON.stringify, String].map((write) => written(value, write)), ...error];
}

/** Empty for a cycle, or an object without a prototype: it cannot come to be text in this way. */
function written(value: unknown, write: (value: unknown) => string | undefined): string {
  try {
    return write(value) ?? "";
  } catch {
    return "";
  }
}

function canariesIn(values: readonly unknown[]): string[] {
  const texts = values.flatMap(textsOf);
  return Object.entries(CANARY)
    .filter(([, canary]) => texts.some((text) => text.includes(canary)))
    .map(([name]) => name);
}

/** What an action throws, now or later. */
async function thrownBy(action: () => unknown): Promise<unknown> {
  try {
    await action();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

/** A receiver with planted secrets, and everything that it says. */
function planted() {
  const said: unknown[] = [];
  const write = (...parts: unknown[]): void => void said.push(...parts);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret: [CANARY.webhookSecret, `${CANARY.webhookSecret}-next`] },
    inbox: memoryInbox(),
    run: "after-response",
    alerts: { threshold: 1 },
    logger: { info: write, warn: write, error: write },
  });
  receiver.observe((notice: Notice) => said.push(notice));
  receiver.onSettlementApproved((event: AnyEvent, context) => void said.push(event, context));
  receiver.onDeposit((event) => {
    said.push(event);
    throw new Error("as told");
  });
  receiver.ignore("WITHDRAWAL").ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  return { receiver, said };
}

describe("planted secrets", () => {
  it("would be found where they are shown", () => {
    expect(canariesIn([{ deep: { secret: CANARY.webhookSecret } }])).toEqual(["webhookSecret"]);
    expect(canariesIn([new Error("x", { cause: new Error(CANARY.apiKey) })])).toEqual(["apiKey"]);
    expect(canariesIn([new Map([["k", keys.privateKey]])])).toEqual(["privateKey"]);
    expect(CANARY.privateKey.length).toBe(64);
    expect(canariesIn([{ line: CANARY.privateKey }])).toEqual(["privateKey"]);
  });

  it("are in no receiver, inbox, client or sandbox that is printed", async () => {
    const { receiver } = planted();
    await receiver.start();
    const client = createClient({
      baseUrl: "https://pay.example",
      publicKey: "public",
      secretKey: CANARY.clientSecret,
      apiKey: CANARY.apiKey,
    });
    const inboxes = [
      memoryInbox(),
      sqliteInbox(":memory:"),
      redisInbox(`redis://user:${CANARY.redisPassword}@127.0.0.1:1`),
    ];
    const shown = { client, receiver, inboxes };
    expect(
      canariesIn([shown, receiver, client, receiver.payments, receiver.connect, receiver.held, ...inboxes]),
    ).toEqual([]);
    await receiver.close({ graceMs: 0 });
  });

  it("are in nothing that a receiver says: log lines, notices, events, contexts, answers, health", async () => {
    const { receiver, said } = planted();
    await receiver.start();
    const fields = callbackFields();
    const deliveries = [
      ["payments", signPaymentCallback(fields, keys.privateKey)],
      ["payments", forgedCallback(callbackFields(), { amount: "1.000000" }, keys.privateKey)],
      ["payments", signPaymentCallback({ ...fields, amount: "11.000000" }, keys.privateKey)],
      ["payments", signPaymentCallback(callbackFields({ amount: "x" }), keys.privateKey)],
      ["connect", signConnectWebhook(connectEvent(), CANARY.webhookSecret)],
      ["connect", signConnectWebhook(connectEvent(), "another secret, which is wrong")],
      ["connect", signConnectWebhook(Buffer.from("{"), CANARY.webhookSecret)],
    ] as const;
    for (const [flow, { rawBody, headers }] of deliveries) {
      const work: Promise<unknown>[] = [];
      const get = (name: string): string | null => headers[name] ?? null;
      const delivery = { method: "POST", url: "/", headers: { get }, rawBody };
      said.push(await receiver[flow].receive({ ...delivery, waitUntil: (one) => void work.push(one) }));
      await Promise.all(work);
    }
    for await (const entry of receiver.held.list()) said.push({ ...entry, delivery: null });
    said.push(await receiver.health());
    await receiver.close({ graceMs: 0 });
    expect(said.length).toBeGreaterThan(20);
    expect(canariesIn(said)).toEqual([]);
  });

  it("are in no error about a wrong set-up or a wrong delivery", async () => {
    const withKey = (publicKey: string) => () =>
      createReceiver({ payments: { publicKey }, inbox: memoryInbox(), run: "elsewhere" }).start();
    const withSecret = (secret: string) => () =>
      createReceiver({ connect: { secret }, inbox: memoryInbox(), run: "elsewhere" }).start();
    const { rawBody } = signPaymentCallback(callbackFields(), keys.privateKey);
    const errors = await Promise.all(
      [
        withKey(keys.privateKey),
        withKey(Buffer.from(keys.privateKey).toString("base64")),
        withKey(keys.privateKey.replaceAll("PRIVATE", "PUBLIC")),
        withKey(CANARY.webhookSecret),
        withSecret(` ${CANARY.webhookSecret}`),
        withSecret(`${CANARY.webhookSecret}\n`),
        () => redisInbox(`redis://user:${CANARY.redisPassword}@127.0.0.1:1`).ready(),
        () => verifyPaymentCallback(rawBody, { publicKey: createTestKeys().publicKey }),
        () => verifyConnectWebhook(rawBody, "sha256=0", { secret: CANARY.webhookSecret }),
      ].map(thrownBy),
    );
    expect(errors.every((error) => error instanceof Error)).toBe(true);
    expect(canariesIn(errors)).toEqual([]);
  });

  it("are not in a sandbox that is printed: whoever wants a key of it asks for it by name", async () => {
    const sandbox = await createSandbox({ port: 0 });
    try {
      const { keys: asked, ...rest } = sandbox;
      const secret = asked.apiKey.split(":")[1] ?? "";
      expect(secret.length).toBeGreaterThan(8);
      const texts = textsOf(rest);
      expect(texts.filter((text) => text.includes(secret) || text.includes("PRIVATE KEY"))).toEqual([]);
      expect(textsOf(asked).filter((text) => text.includes("PRIVATE KEY"))).toEqual([]);
    } finally {
      await sandbox.close();
    }
  });
});
