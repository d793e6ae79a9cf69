import { type ConnectEvent, type ConnectOptions, verifyConnectWebhook } from "@payhooks/core";
import { anyConnectEvent, connectEvent, signConnectWebhook } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { codeOfReply, rejectedBy, SECRET, setUp, thrownBy } from "../receiving.ts";

const connect: ConnectOptions = { secret: SECRET };
const EVENTS = [
  "connected_account.approved",
  "connected_account.declined",
  "settlement.approved",
  "settlement.declined",
] as const;
const verify = (event: object | Uint8Array) => {
  const { rawBody, headers } = signConnectWebhook(event, SECRET);
  return verifyConnectWebhook(rawBody, headers["x-connect-signature"], { secret: SECRET }).event;
};
const withData = (name: string, changes: object) => {
  const event = anyConnectEvent(name);
  return { ...event, data: { ...(event.data as object), ...changes } };
};

describe("a connected-account webhook", () => {
  it.each(EVENTS)("of %s is verified, run and recognised when it comes again", async (name) => {
    const t = await setUp({ connect });
    const sent = anyConnectEvent(name);
    const signed = signConnectWebhook(sent, SECRET);
    expect(await t.post("connect", signed)).toMatchObject({ status: 200, body: '{"received":true}' });
    expect(await t.post("connect", signed)).toMatchObject({ status: 200 });
    expect(t.ran).toHaveLength(1);
    const [event] = t.ran as ConnectEvent[];
    expect(JSON.parse(JSON.stringify(event))).toEqual({
      ...sent,
      data: { ...(sent.data as object), extra: {} },
      extra: {},
      authenticated: true,
    });
    for (const part of [event, event?.data, event?.extra, event?.data.extra]) {
      expect(Object.isFrozen(part)).toBe(true);
      expect(Object.getPrototypeOf(part)).toBeNull();
    }
  });

  it("keeps undocumented members apart, frozen to their depth", () => {
    const sent = { ...withData("settlement.approved", { fees: [{ a: 1 }], note: null }), livemode: true };
    const event = verify(sent);
    expect(JSON.parse(JSON.stringify(event.extra))).toEqual({ livemode: true });
    expect(JSON.parse(JSON.stringify(event.data.extra))).toEqual({ fees: [{ a: 1 }], note: null });
    expect(Object.isFrozen((event.data.extra.fees as object[])[0])).toBe(true);
    expect(event.data).not.toHaveProperty("fees");
  });

  it("cannot declare itself authenticated, nor give itself extra", () => {
    const event = verify({ ...connectEvent(), authenticated: "yes", extra: 1 });
    expect(event.authenticated).toBe(true);
    expect({ ...event.extra }).toEqual({ authenticated: "yes", extra: 1 });
  });

  it("takes __proto__ and constructor as names like any other", () => {
    const text = JSON.stringify(connectEvent()).replace(
      /\}$/,
      ',"__proto__":{"admin":true},"constructor":1}',
    );
    const event = verify(Buffer.from(text));
    expect(Object.keys(event.extra)).toEqual(["__proto__", "constructor"]);
    expect((event as { admin?: unknown }).admin).toBeUndefined();
  });

  it.each([0, 1, -5, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])(
    "has the settlement amount %i",
    (amount) => {
      expect(verify(withData("settlement.approved", { amount })).data).toMatchObject({ amount });
    },
  );

  it.each(["9007199254740992", "1.5", "1e400", "12345678901234567890", '"125000"', "null", "[1]", "true"])(
    "with the settlement amount %s is held, not rounded",
    async (amount) => {
      const t = await setUp({ connect });
      const text = JSON.stringify(connectEvent("settlement.declined")).replace("125000", amount);
      await t.post("connect", signConnectWebhook(Buffer.from(text), SECRET));
      expect(t.ran).toEqual([]);
      expect(await t.held()).toMatchObject([
        { reason: "malformed", detail: "data.amount is not a safe integer" },
      ]);
    },
  );

  const MALFORMED: readonly (readonly [string, object | Uint8Array, RegExp])[] = [
    ["no event", anyConnectEvent("settlement.approved", { event: undefined }), /^event/],
    ["an event that is a number", anyConnectEvent("settlement.approved", { event: 5 }), /^event/],
    [
      "no idempotency_key",
      anyConnectEvent("settlement.approved", { idempotency_key: undefined }),
      /^idempotency_key/,
    ],
    [
      "an empty idempotency_key",
      anyConnectEvent("settlement.approved", { idempotency_key: "" }),
      /^idempotency_key/,
    ],
    [
      "an idempotency_key in an array",
      anyConnectEvent(undefined, { idempotency_key: ["e"] }),
      /^idempotency_key/,
    ],
    ["no occurred_at", anyConnectEvent(undefined, { occurred_at: null }), /^occurred_at/],
    ["an occurred_at in no zone", connectEvent(undefined, { occurred_at: "2025-01-01T00:00:00" }), /^occ/],
    ["no data", anyConnectEvent(undefined, { data: undefined }), /^data/],
    ["data of null", anyConnectEvent(undefined, { data: null }), /^data/],
    ["data in an array", anyConnectEvent(undefined, { data: [{}] }), /^data/],
    [
      "data of another object",
      withData("settlement.approved", { object: "connected_account" }),
      /data\.object/,
    ],
    ["a settlement without id", withData("settlement.approved", { id: undefined }), /data\.id/],
    [
      "a settlement without account",
      withData("settlement.approved", { connected_account_id: "" }),
      /connected_acc/,
    ],
    ["a settlement without status", withData("settlement.approved", { status: 1 }), /data\.status/],
    ["an account without id", withData("connected_account.approved", { id: null }), /data\.id/],
    [
      "an account without master",
      withData("connected_account.approved", { master_merchant_id: 7 }),
      /master/,
    ],
    [
      "an account without kyc_status",
      withData("connected_account.declined", { kyc_status: undefined }),
      /kyc_status/,
    ],
    [
      "a name twice",
      Buffer.from(JSON.stringify(connectEvent()).replace("{", '{"event":"x",')),
      /duplicate names/,
    ],
    [
      "more than 8 KiB and 5,000 parts",
      anyConnectEvent(undefined, { x: Array(5_001).fill(1) }),
      /more than 8 KiB and 5,000 parts/,
    ],
    [
      "deep nesting",
      anyConnectEvent(undefined, { x: JSON.parse("[".repeat(20) + "]".repeat(20)) }),
      /nested too deeply/,
    ],
  ];
  it.each(MALFORMED)("with %s is held as malformed under a valid signature", async (_, event, detail) => {
    const t = await setUp({ connect });
    expect(await t.post("connect", signConnectWebhook(event, SECRET))).toMatchObject({ status: 200 });
    expect(t.ran).toEqual([]);
    expect(await t.held()).toMatchObject([{ reason: "malformed", detail: expect.stringMatching(detail) }]);
    expect(thrownBy(() => verify(event)).code).toBe("ERR_EVENT_MALFORMED");
  });

  it.each(["settlement.paid", "SETTLEMENT.APPROVED", "account.updated", "__proto__", "constructor"])(
    "of the unlisted event %j is held as unrecognized, whatever its data",
    async (name) => {
      const t = await setUp({ connect });
      const signed = signConnectWebhook(anyConnectEvent(name, { data: { object: "thing" } }), SECRET);
      expect(await t.post("connect", signed)).toMatchObject({ status: 200 });
      expect(t.ran).toEqual([]);
      expect(await t.held()).toMatchObject([{ reason: "unrecognized", event: name }]);
      expect(thrownBy(() => verify(anyConnectEvent(name))).code).toBe("ERR_EVENT_UNRECOGNIZED");
    },
  );

  it.each([-12.5, 1e21, 0.1234567])("with the amount %d is in no range of amounts", async (amount) => {
    const t = await setUp({ connect });
    const sent = anyConnectEvent("account.updated", { data: { object: "thing", amount } });
    await t.post("connect", signConnectWebhook(sent, SECRET));
    expect(await t.held()).toMatchObject([{ reason: "unrecognized", amount: String(amount) }]);
    const { events } = await t.receiver.events.list({ amount: { min: "0" } });
    expect(events).toEqual([]);
  });

  it("that is not authentic is answered 400, or 401 if that is configured, and nothing is kept", async () => {
    for (const status of [400, 401] as const) {
      const t = await setUp({ connect: { ...connect, badSignatureStatus: status } });
      const { rawBody, headers } = signConnectWebhook(connectEvent(), "another-secret-0123456789");
      const header = String(headers["x-connect-signature"]);
      const cases: [Record<string, string>, string][] = [
        [headers, "ERR_SIGNATURE_INVALID"],
        [{ "content-type": "application/json" }, "ERR_SIGNATURE_MISSING"],
        [{ ...headers, "x-connect-signature": "" }, "ERR_SIGNATURE_MISSING"],
        [{ ...headers, "x-connect-signature": `${header}, ${header}` }, "ERR_SIGNATURE_MALFORMED"],
      ];
      for (const [sent, code] of cases) {
        const reply = await t.post("connect", { rawBody, headers: sent });
        expect([reply.status, codeOfReply(reply)]).toEqual([status, code]);
      }
      expect(await t.held()).toEqual([]);
      expect(t.ran).toEqual([]);
    }
  });

  it("with thousands of members is run with all of them", () => {
    const { extra } = verify(anyConnectEvent(undefined, { x: Array(4_900).fill(1) }));
    expect(extra.x).toHaveLength(4_900);
  });

  it("is checked byte by byte: the same JSON with a further space is refused", async () => {
    const t = await setUp({ connect });
    const { rawBody, headers } = signConnectWebhook(connectEvent(), SECRET);
    const spaced = Buffer.from(Buffer.from(rawBody).toString().replace(":", ": "));
    expect((await t.post("connect", { rawBody: spaced, headers })).status).toBe(400);
  });

  it.each(["", "[]", "null", "not json", "\ufeff{}"])(
    "with the signed body %j is answered 400",
    async (text) => {
      const t = await setUp({ connect });
      const reply = await t.post("connect", signConnectWebhook(Buffer.from(text), SECRET));
      expect([reply.status, codeOfReply(reply)]).toEqual([400, "ERR_BODY_NOT_JSON"]);
      expect(await t.held()).toEqual([]);
    },
  );
});

describe("connect.unsafeAllowUnsigned", () => {
  const unsigned = {
    rawBody: signConnectWebhook(connectEvent(), SECRET).rawBody,
    headers: { "content-type": "application/json" },
  };

  it("is the only way to receive an unsigned webhook, and the event and a warning at the start say so", async () => {
    const t = await setUp({ connect: { unsafeAllowUnsigned: true } });
    expect(await t.post("connect", unsigned)).toMatchObject({ status: 200 });
    expect(t.ran).toMatchObject([{ authenticated: false }]);
    expect(t.notices).toContainEqual(
      expect.objectContaining({ type: "warning", what: expect.stringContaining("unsafeAllowUnsigned") }),
    );
    const strict = await setUp({ connect });
    expect(await strict.post("connect", unsigned)).toMatchObject({ status: 400 });
  });

  it("is refused together with a secret, and has no effect if it is false", async () => {
    const both = async () => setUp({ connect: { secret: SECRET, unsafeAllowUnsigned: true } });
    expect((await rejectedBy(both())).code).toBe("ERR_OPTION_INVALID");
    const off = setUp({ connect: { secret: undefined, unsafeAllowUnsigned: false } });
    expect((await rejectedBy(off)).code).toBe("ERR_OPTION_MISSING");
  });
});

describe("the two flows", () => {
  it("are independent: a genuine delivery of one is refused by the other", async () => {
    const { createTestKeys, callbackFields, signPaymentCallback } = await import("@payhooks/core/testing");
    const { publicKey, privateKey } = createTestKeys();
    const t = await setUp({ connect, payments: { publicKey } });
    const callback = signPaymentCallback(callbackFields(), privateKey);
    expect((await t.post("connect", callback)).status).toBe(400);
    expect((await t.post("payments", signConnectWebhook(connectEvent(), SECRET))).status).toBe(401);
    expect(t.ran).toEqual([]);
  });
});
