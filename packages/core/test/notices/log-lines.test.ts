import { createReceiver, memoryInbox, type ReceiverOptions } from "@payhooks/core";
import {
  asDelivery,
  callbackFields,
  connectEvent,
  createTestKeys,
  fakeClock,
  forgedCallback,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { LOG_RULES, LogLines } from "../../src/notices/log-lines.ts";
import type { Notice } from "../../src/notices/notice.ts";
import { deliveryOf, noticed, SECRET, setUp, thrownBy } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const sign = (fields: Record<string, string | null> = {}): SignedDelivery =>
  signPaymentCallback(callbackFields(fields), privateKey);
const forged = (): SignedDelivery => forgedCallback(callbackFields(), { amount: "99999.000000" }, privateKey);
const unsigned = (fields: Record<string, unknown> = {}): SignedDelivery =>
  asDelivery({ ...callbackFields(), signature: "AAAA", ...fields });

const HELD = "held: the event does not run until a person decides";

describe("the log", () => {
  it("has the lines that a person should see, and none of normal operation", async () => {
    const t = await setUp({ payments: { publicKey } });
    const before = t.lines.length;
    await t.post("payments", sign());
    expect(t.lines).toHaveLength(before);
    await t.post("payments", sign({ status: "success" }));
    const at = new Date(t.clock.now()).toISOString();
    expect(t.lines.slice(before)).toMatchObject([["warn", HELD, { at, reason: "malformed" }]]);
  });

  it("warns of an authentic delivery that is outside the window, since a clock may be wrong", async () => {
    const t = await setUp({ payments: { publicKey } });
    const before = t.lines.length;
    await t.clock.advance("30d");
    expect(await t.post("payments", sign())).toMatchObject({ status: 400 });
    expect(t.lines.slice(before)).toMatchObject([
      [
        "error",
        expect.stringContaining("authentic deliveries are refused"),
        { code: "ERR_TIMESTAMP_EXPIRED" },
      ],
      ["warn", expect.stringContaining("refused with 400 ERR_TIMESTAMP_EXPIRED: "), { flow: "payments" }],
    ]);
  });

  it("says in words what each notice means", () => {
    const log: string[] = [];
    const write = (message: string): void => void log.push(message);
    const lines = new LogLines({ info: write, warn: write, error: write }, "info", fakeClock());
    for (const [type, rule] of Object.entries(LOG_RULES)) {
      if (rule !== null && type !== "warning") lines.write({ type, at: 0, kind: "all-failing" } as Notice);
    }
    expect(log).toHaveLength(Object.values(LOG_RULES).filter((rule) => rule !== null).length - 1);
    for (const message of log) expect(message).toMatch(/^[a-z-]+: \w.* \w/);
  });

  it("has one line about five bad signatures in development, with their most likely cause", async () => {
    const wrong = createTestKeys();
    const t = await setUp({
      payments: { publicKey: wrong.publicKey },
      connect: { secret: `${SECRET}-other` },
    });
    const before = t.lines.length;
    for (let i = 0; i < 5; i++) {
      await t.post("payments", sign());
      await t.post("connect", signConnectWebhook(connectEvent(), SECRET));
    }
    expect(t.lines.slice(before)).toEqual([
      [
        "warn",
        expect.stringMatching(
          /^refused with 401 ERR_SIGNATURE_INVALID: the signature fits none of the keys\. .*compare payments\.publicKey with the dashboard/,
        ),
        { flow: "payments", address: "192.0.2.1" },
      ],
      [
        "warn",
        expect.stringMatching(
          /^refused with 400 ERR_SIGNATURE_INVALID: .*connect\.secret is not the webhook_secret/,
        ),
        { flow: "connect", address: "192.0.2.1" },
      ],
    ]);
    const fixes = t.notices.flatMap((notice) => (notice.type === "refused" ? [notice.fix !== null] : []));
    expect(fixes).toEqual([true, true, ...Array(8).fill(false)]);
  });

  it.each([
    ["payments", unsigned({ signature: "" }), /ERR_SIGNATURE_MISSING: .*another program's request/],
    ["payments", unsigned({ signature: "AA" }), /ERR_SIGNATURE_MALFORMED: .*base64/],
    [
      "connect",
      { ...signConnectWebhook({}, SECRET), headers: {} },
      /ERR_SIGNATURE_MISSING: .*no webhook_secret/,
    ],
    [
      "connect",
      { headers: { "x-connect-signature": "sha256=0" } },
      /ERR_SIGNATURE_MALFORMED: .*header twice/,
    ],
  ] as const)("has a likely cause for each bad signature of %s", async (flow, sent, line) => {
    const t = await setUp({ payments: { publicKey }, connect: { secret: SECRET } });
    const { rawBody, headers } = { ...unsigned(), ...sent };
    await t.post(flow, { rawBody, headers: { ...headers, "content-type": "application/json" } });
    expect(t.lines.at(-1)).toEqual(["warn", expect.stringMatching(line), expect.anything()]);
  });

  it("does not speak of the key where the resolver does not know the merchant", async () => {
    const t = await setUp({ payments: { publicKey: () => null }, connect: { secret: () => null } });
    await t.post("payments", sign());
    await t.post("connect", signConnectWebhook(connectEvent(), SECRET));
    const lines = t.lines.map(([, message]) => message).filter((message) => message.startsWith("refused"));
    expect(lines).toHaveLength(2);
    for (const line of lines)
      expect(line).toMatch(/unknown tenant.* the resolver does not know the merchant yet/);
  });

  it("names an address again once its bad signatures are out of the alerts' window", async () => {
    const t = await setUp({ payments: { publicKey }, alerts: { windowMs: 60_000 } });
    const before = t.lines.length;
    await t.post("payments", forged());
    await t.clock.advance("2m");
    await t.post("payments", forged());
    await t.post("payments", forged());
    expect(t.lines.slice(before)).toHaveLength(2);
  });
});

describe("strangers", () => {
  const charactersOf = (lines: unknown): number => JSON.stringify(lines).length;

  it("make one line a minute of a resolver that fails, without their text, and one of how many there were", async () => {
    const t = await setUp({
      payments: {
        publicKey: async ({ merchantId }) => {
          throw Object.assign(new Error(`invalid input syntax for type uuid: "${merchantId}"`), {
            code: "22P02",
          });
        },
      },
    });
    const before = t.lines.length;
    const send = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const reply = await t.post("payments", unsigned({ merchantId: `stranger ${i} ${"x".repeat(400)}` }));
        expect(reply.status).toBe(503);
      }
    };
    await send(500);
    await t.clock.advance("1m");
    expect(t.lines.slice(before)).toEqual([
      [
        "error",
        "refused with 503 ERR_RESOLVER_FAILED: The key resolver failed: Error: 22P02",
        { flow: "payments", address: "192.0.2.1", stack: expect.stringContaining("log-lines.test") },
      ],
      [
        "error",
        "refused with 503 ERR_RESOLVER_FAILED in payments: 499 more within a minute were not written",
        undefined,
      ],
    ]);
    expect(JSON.stringify([t.lines, t.notices])).not.toMatch(/stranger|xxxx/);
    await send(1);
    expect(t.lines.slice(before)).toHaveLength(3);
  });

  it("with made-up addresses of any length fill neither the log nor the memory", async () => {
    const t = await setUp({ payments: { publicKey } });
    const before = t.lines.length;
    for (let n = 0; n < 100; n++) {
      const remoteAddress = `${n}-${"x".repeat(15_000)}`;
      for (let i = 0; i < 10; i++) await t.post("payments", unsigned(), { remoteAddress });
      await t.post("payments", sign({ payTxnId: `tx-${n}` }));
    }
    await t.clock.advance("1m");
    const lines = t.lines.slice(before);
    expect(lines.length).toBeLessThan(30);
    expect(charactersOf(lines)).toBeLessThan(20_000);
    expect(lines.map(([, message]) => message)).toContainEqual(
      expect.stringMatching(/^refused with 401 ERR_SIGNATURE_INVALID in payments: 90 more/),
    );
    const addresses = t.notices.flatMap((notice) => ("address" in notice ? [notice.address ?? ""] : []));
    expect(Math.max(...addresses.map((address) => address.length))).toBe(64);
    expect(t.notices.filter(({ type }) => type === "alert").length).toBeLessThan(15);
  });

  it("do not keep the lines of others from being written", async () => {
    const t = await setUp({ payments: { publicKey } });
    for (let n = 0; n < 200; n++) await t.post("payments", unsigned(), { remoteAddress: `198.51.100.${n}` });
    await t.post("payments", sign({ status: "success" }));
    expect(t.lines.at(-1)).toMatchObject(["warn", HELD, {}]);
  });
});

describe("lines about one thing", () => {
  it("are counted anew each minute of the receiver's clock, and a line at the close says how many were left out", async () => {
    const t = await setUp({ payments: { publicKey } });
    const before = t.lines.length;
    const hold = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) await t.post("payments", sign({ status: "success" }));
    };
    const messages = (): unknown[] => t.lines.slice(before).map(([, message]) => message);
    await hold(130);
    expect(messages()).toEqual(Array(100).fill(HELD));
    await t.clock.advance("59s");
    expect(messages()).toHaveLength(100);
    await t.clock.advance("1s");
    expect(messages().slice(100)).toEqual(["held: 30 more within a minute were not written"]);
    await hold(101);
    await t.receiver.close();
    expect(messages().slice(101)).toEqual([
      ...Array(100).fill(HELD),
      "held: 1 more within a minute were not written",
    ]);
  });

  it("are counted anew also where timers are lost, as they are with a request on Workers", async () => {
    const running = fakeClock();
    let lost = 0;
    const clock = {
      ...running,
      after: (ms: number, callback: () => void) =>
        ms > 10_000 ? () => void lost++ : running.after(ms, callback),
    };
    const t = await setUp({ payments: { publicKey }, clock, inbox: memoryInbox({ clock }) }, running);
    const before = t.lines.length;
    for (let i = 0; i < 105; i++) await t.post("payments", sign({ status: "success" }));
    await running.advance("2m");
    await t.post("payments", sign({ status: "success" }));
    expect(t.lines.slice(before + 100).map(([, message]) => message)).toEqual([
      "held: 5 more within a minute were not written",
      HELD,
    ]);
    expect(lost).toBeGreaterThan(0);
  });

  it("have no text of more than 500 characters but a stack", async () => {
    const t = await setUp({ payments: { publicKey } });
    const long = "r".repeat(5_000);
    await t.post("payments", sign({ payTxnId: long, status: "REVERSED" }));
    const [, , facts] = t.lines.at(-1) ?? [];
    expect(facts).toMatchObject({ reason: "unrecognized", id: `${"r".repeat(500)}…` });
    expect(t.notices.at(-1)).toMatchObject({ id: long });
  });

  it("of an observer that throws are one a minute", async () => {
    const t = await setUp({ payments: { publicKey } });
    t.receiver.observe(() => {
      throw new Error("the observer is broken");
    });
    for (let i = 0; i < 50; i++) await t.post("payments", sign());
    expect(t.lines.filter(([, message]) => message === "the observer threw")).toHaveLength(1);
  });
});

describe("the level", () => {
  afterEach(() => vi.restoreAllMocks());

  /** The lines that a receiver writes about one deposit, its copy, and one entry. */
  async function written(options: Partial<ReceiverOptions>): Promise<readonly string[]> {
    const said: string[] = [];
    for (const level of ["info", "warn", "error"] as const) {
      vi.spyOn(console, level).mockImplementation((message) => said.push(`${level}: ${message}`));
    }
    const clock = fakeClock();
    const receiver = createReceiver({
      payments: { publicKey },
      clock,
      inbox: memoryInbox({ clock }),
      run: "after-response",
      ...options,
    });
    receiver.onDeposit((_, { log }) => log.info("credited")).ignore("WITHDRAWAL");
    await receiver.start();
    const deposit = sign();
    const work: Promise<unknown>[] = [];
    for (const sent of [deposit, deposit, sign({ status: "success" })]) {
      await receiver.payments.receive({ ...deliveryOf(sent), waitUntil: (one) => work.push(one) });
      await Promise.all(work);
    }
    await noticed();
    await receiver.close();
    return said;
  }

  it("is warn by default: normal operation is not written", async () => {
    expect(await written({})).toEqual([`warn: payhooks: ${HELD}`]);
    expect(await written({ logger: console })).toEqual(["info: credited", `warn: ${HELD}`]);
  });

  it("info adds the lines of normal operation", async () => {
    expect(await written({ logLevel: "info" })).toEqual([
      "info: payhooks: accepted: the event is stored and will run",
      "info: payhooks: credited",
      "info: payhooks: done: a handler is done",
      "info: payhooks: duplicate: a copy of a stored event",
      `warn: payhooks: ${HELD}`,
    ]);
    const own = await written({ logger: console, logLevel: "info" });
    expect(own).toEqual([
      "info: accepted: the event is stored and will run",
      "info: credited",
      "info: done: a handler is done",
      "info: duplicate: a copy of a stored event",
      `warn: ${HELD}`,
    ]);
  });

  it("error leaves warnings out", async () => {
    expect(await written({ logLevel: "error" })).toEqual([]);
  });

  it("is one of three", () => {
    const error = thrownBy(() => createReceiver({ payments: { publicKey }, logLevel: "debug" as "info" }));
    expect(error.code).toBe("ERR_OPTION_INVALID");
    expect(error.message).toContain('"info", "warn" or "error"');
  });
});
