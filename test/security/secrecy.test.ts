import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { ClientError, createClient } from "@payhooks/client";
import {
  type AnyEvent,
  createReceiver,
  memoryInbox,
  type Notice,
  type Receiver,
  verifyConnectWebhook,
  verifyPaymentCallback,
} from "@payhooks/core";
import { sharedReceiver } from "@payhooks/core/adapter";
import { eachEvent } from "@payhooks/core/events";
import { createInbox, memoryStore } from "@payhooks/core/inbox";
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
import Database from "libsql";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../support/silent.ts";
import { CANARY, canariesIn, keys, textsOf, thrownBy } from "./canaries.ts";
import { Breaker, breakable, DRIVER_ERRORS } from "./driver-errors.ts";
import { collectOutput } from "./output.ts";
import { readingsOf, SPELLINGS } from "./spellings.ts";

/** A receiver with planted secrets, and everything that it says. */
function planted() {
  const output: unknown[] = [];
  const write = (...parts: unknown[]): void => void output.push(...parts);
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    connect: { secret: [CANARY.webhookSecret, `${CANARY.webhookSecret}-next`] },
    inbox: memoryInbox(),
    run: "after-response",
    alerts: { threshold: 1 },
    logger: { info: write, warn: write, error: write },
  });
  receiver.observe((notice: Notice) => output.push(notice));
  receiver.onSettlementApproved((event: AnyEvent, context) => void output.push(event, context));
  receiver.onDeposit((event) => {
    output.push(event);
    throw new Error("as told");
  });
  receiver.ignore("WITHDRAWAL").ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  return { receiver, output };
}

describe("planted secrets", () => {
  it("would be found where they are shown", () => {
    expect(canariesIn([{ deep: { secret: CANARY.webhookSecret } }])).toEqual(["webhookSecret"]);
    expect(canariesIn([new Error("x", { cause: new Error(CANARY.apiKey) })])).toEqual(["apiKey"]);
    expect(canariesIn([new Map([["k", keys.privateKey]])])).toEqual(["privateKey"]);
    expect(CANARY.privateKey.length).toBe(64);
    expect(canariesIn([{ line: CANARY.privateKey }])).toEqual(["privateKey"]);
    expect(canariesIn([Object.assign(new Error("x"), { command: { args: [CANARY.personal] } })])).toEqual([
      "personal",
    ]);
  });

  it.each(SPELLINGS)("would be found %s", (_, write) => {
    expect(canariesIn([{ told: write(CANARY.clientSecret) }])).toEqual(["clientSecret"]);
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
      canariesIn([shown, receiver, client, receiver.payments, receiver.connect, receiver.events, ...inboxes]),
    ).toEqual([]);
    await receiver.close({ graceMs: 0 });
  });

  it("are in nothing that a receiver says: log lines, notices, events, contexts, answers, health", async () => {
    const { receiver, output } = planted();
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
      output.push(await receiver[flow].receive({ ...delivery, waitUntil: (one) => void work.push(one) }));
      await Promise.all(work);
    }
    for await (const entry of eachEvent(receiver.events, { state: "held" }))
      output.push({ ...entry, delivery: null });
    output.push(await receiver.health());
    await receiver.close({ graceMs: 0 });
    expect(output.length).toBeGreaterThan(20);
    expect(canariesIn(output)).toEqual([]);
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

  it("are not in a sandbox that is printed: a program has to ask for a key by name", async () => {
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

describe("an error of a store", { timeout: 60_000 }, () => {
  it.each(DRIVER_ERRORS)(
    "is reported without the data that it was given: a store that throws, %s",
    async (_, fail) => {
      const breaker = new Breaker();
      const inbox = createInbox(breakable(memoryStore(), breaker, fail), { leaseMs: 300 });
      const output = await collectOutput({ inbox, failsInside: true, fail: breaker.fail });
      expect(canariesIn(output)).toEqual([]);
    },
  );

  it.each(DRIVER_ERRORS)(
    "is reported without the data that it was given: an inbox of the merchant's own, %s",
    async (_, fail) => {
      const breaker = new Breaker();
      const inbox = breakable(memoryInbox({ leaseMs: 300 }), breaker, fail);
      expect(canariesIn(await collectOutput({ inbox, failsInside: false, fail: breaker.fail }))).toEqual([]);
    },
  );

  it.each(DRIVER_ERRORS)(
    "is reported without the data that it was given: a SQLite handle, %s",
    async (_, fail) => {
      const breaker = new Breaker();
      const folder = mkdtempSync(join(tmpdir(), "payhooks-secrecy-"));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const database = new Database(join(folder, "inbox.db"));
      const inbox = sqliteInbox(breakable(database, breaker, fail), { leaseMs: 300, pollMs: 50 });
      const output = await collectOutput({ inbox, failsInside: true, fail: breaker.fail });
      expect(canariesIn(output)).toEqual([]);
      // The text that is left still says what to do.
      expect(inspect(output, { depth: 9 })).toContain("ERR_INBOX_UNAVAILABLE");
    },
  );
});

describe("an address of Redis that cannot be read", () => {
  const { redisPassword } = CANARY;
  const addresses = [
    `redis://:${redisPassword}/x@127.0.0.1:1`,
    `redis://user:${redisPassword}#x@127.0.0.1:1`,
    `redis://user:${redisPassword}?x@127.0.0.1:1`,
    `redis://user:1/${redisPassword}@127.0.0.1:1`,
    `redis://user:%${redisPassword}@127.0.0.1:1`,
    `user:${redisPassword}/x@127.0.0.1:1`,
    `//user:${redisPassword}#x@127.0.0.1:1`,
    `https://user:${redisPassword}@127.0.0.1:1`,
    `redis:/user:${redisPassword}@127.0.0.1:1`,
    ` ${redisPassword} `,
  ];

  it.each(addresses)("is refused with the fix, and without the password: %#", async (address) => {
    const output: unknown[] = [];
    const write = (...parts: unknown[]): void => void output.push(...parts);
    const receiver = createReceiver({
      connect: { secret: CANARY.webhookSecret },
      inbox: redisInbox(address),
      logger: { info: write, warn: write, error: write },
    });
    receiver.onSettlementApproved(() => {}).observe((notice) => output.push(notice));
    const errors = await Promise.all(
      [
        () => redisInbox(address).ready(),
        () => receiver.start(),
        () => receiver.events.get("0"),
        () => receiver.events.list({ state: "held" }),
      ].map(thrownBy),
    );
    output.push(await receiver.health(), ...errors);
    await receiver.close({ graceMs: 0 });
    for (const error of errors) {
      expect(error).toMatchObject({
        code: "ERR_OPTION_INVALID",
        fix: expect.stringMatching(/percent-encoded/),
      });
    }
    expect(canariesIn(output)).toEqual([]);
  });

  it.each([
    "redis://user:p%2Fa%23s%3Fs@127.0.0.1:1/0",
    "rediss://127.0.0.1:1",
    "redis://user:p@ss@127.0.0.1:1",
    "127.0.0.1:1",
    "/no/such/socket?db=1",
    "1",
  ])("is none of those that ioredis takes: %s", async (address) => {
    const error = await thrownBy(() => redisInbox(address, { commandTimeoutMs: 300 }).ready());
    expect(error).toMatchObject({ code: "ERR_INBOX_UNAVAILABLE" });
  });
});

describe("the global state of the process", () => {
  it("shows no address and no receiver when globalThis is printed", async () => {
    /** A server that never answers, so that the connection stays as it is. */
    const mute = createServer((socket) => void socket.on("error", () => {})).listen(0, "127.0.0.1");
    await once(mute, "listening");
    const { port } = mute.address() as AddressInfo;
    const inbox = redisInbox(`redis://user:${CANARY.redisPassword}@127.0.0.1:${port}`, {
      commandTimeoutMs: 300,
    });
    const shared = sharedReceiver(
      (): Receiver => createReceiver({ connect: { secret: CANARY.webhookSecret }, inbox, logger: silent }),
      crypto.randomUUID(),
    );
    const starting = shared()
      .onSettlementApproved(() => {})
      .start();
    const failed = thrownBy(() => starting);
    await once(mute, "connection");
    const kept = Object.getOwnPropertySymbols(globalThis).filter(({ description }) =>
      description?.startsWith("payhooks"),
    );
    expect(kept.map(({ description }) => description).sort()).toEqual([
      "payhooks.receivers",
      "payhooks.redis",
    ]);
    const home = globalThis as unknown as Readonly<Record<symbol, unknown>>;
    expect(canariesIn(kept.map((symbol) => ({ kept: home[symbol] })))).toEqual([]);
    mute.close();
    await failed;
  });
});

describe("a service that repeats what it was sent", () => {
  /** An error of the client about an answer that repeats a text. */
  async function errorAbout(
    status: number,
    body: string,
    call: (client: ReturnType<typeof clientOf>) => Promise<unknown>,
  ): Promise<unknown> {
    const fetch = async (): Promise<Response> => new Response(body, { status });
    return thrownBy(() => call(clientOf(fetch)));
  }
  const clientOf = (fetch: typeof globalThis.fetch) =>
    createClient({
      ...{ baseUrl: "https://pay.example", publicKey: "pk", secretKey: CANARY.clientSecret },
      ...{ apiKey: CANARY.apiKey, fetch, attempts: 1 },
    });
  const payment = {
    amount: "10.50",
    currency: "ETB",
    phone_number: "251911000000",
    medium: "TELEBIRR",
    reference: "order-1",
  } as const;
  const settings = { webhook_url: "https://merchant.example/w", webhook_enabled: true };

  it.each(SPELLINGS)("gets it masked in the error: %s", async (_, write) => {
    const echo = write(`pk:${CANARY.clientSecret}`);
    const told = [
      await errorAbout(400, echo, (client) => client.pay(payment)),
      await errorAbout(500, echo, (client) => client.transactionById("t")),
      await errorAbout(200, JSON.stringify({ success: false, echo }), (client) => client.pay(payment)),
      await errorAbout(401, write(CANARY.apiKey), (client) => client.webhookSettings()),
      await errorAbout(400, write(CANARY.webhookSecret), (client) =>
        client.setWebhookSettings({ ...settings, webhook_secret: CANARY.webhookSecret }),
      ),
    ];
    expect(canariesIn([echo])).toEqual(["clientSecret"]);
    for (const error of told) {
      expect(error).toBeInstanceOf(ClientError);
      expect(inspect((error as ClientError).body)).toContain("[secret]");
      expect(canariesIn([error, (error as ClientError).body])).toEqual([]);
    }
  });

  it("keeps a text that only looks like a secret", async () => {
    const body = { message: "order-1 is unknown", amount: 10.5, list: [1, "a/b", null, true] };
    const error = await errorAbout(400, JSON.stringify(body), (client) => client.pay(payment));
    expect((error as ClientError).body).toEqual(body);
    expect(readingsOf(JSON.stringify(body)).join()).not.toContain("CANARY");
  });
});
