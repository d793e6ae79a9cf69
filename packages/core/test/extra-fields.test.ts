import { type PaymentEvent, verifyPaymentCallback } from "@payhooks/core";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { rejectedBy, setUp, signText, thrownBy } from "./receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const bodyWith = (members: string): string => `${JSON.stringify(callbackFields()).slice(0, -1)}${members}}`;
const eventOf = (text: string, extraFields: readonly string[] = []): PaymentEvent =>
  verifyPaymentCallback(signText(text, privateKey).rawBody, { publicKey, extraFields }).event;
const extraOf = (members: string, extraFields?: readonly string[]) => ({
  ...eventOf(bodyWith(members), extraFields).extra,
});

describe("undocumented fields", () => {
  it("are handed on, numbers as the text they were written with, booleans as booleans", () => {
    const members = ',"fee":1.50,"big":12345678901234567890,"channel":"USSD","final":true,"exp":1E+2';
    // `channel` comes after callbackUrl in sorted order, and so could be the end of one.
    expect(extraOf(members)).toEqual({ fee: "1.50", big: "12345678901234567890", final: true, exp: "1E+2" });
  });

  it.each([
    ["callbackUrl", ',"d":"2"'],
    ["callbackUrl, the second one too", ',"d":"2","dd":"3"'],
    ["message", ',"n":"1"'],
    ["message, the second one too", ',"n":"1","nn":true'],
  ])("are not handed on where they could be the cut-off end of %s", (_, members) => {
    expect(extraOf(members)).toEqual({});
  });

  it("are handed on even there when they are declared, and then one must not be missing", () => {
    expect(extraOf(',"d":"2","n":"1"', ["d"])).toEqual({ d: "2" });
    expect(extraOf(',"d":"2","n":"1"', ["n", "d"])).toEqual({ d: "2", n: "1" });
    expect(thrownBy(() => extraOf(',"d":"2"', ["d", "n"])).code).toBe("ERR_EVENT_AMBIGUOUS");
  });

  it("that are null are not handed on", () => {
    expect(extraOf(',"fee":null,"zone":null')).toEqual({});
  });

  it("never hold the signature", () => {
    const event = eventOf(bodyWith(',"fee":1'));
    expect(event).not.toHaveProperty("signature");
    expect(event.extra).toEqual({ fee: "1" });
  });
});

describe("an optional field", () => {
  const OPTIONAL = ["merchantId", "message", "providerTxId", "userId"];
  const absentIn = (event: PaymentEvent): readonly string[] => OPTIONAL.filter((name) => !(name in event));

  it.each([
    ["event", "fee", ["merchantId", "message"]],
    ["merchantId", "merchantName", ["message"]],
    ["payTxnId", "phone", ["providerTxId"]],
    ["timestamp", "type", ["userId"]],
  ])(
    "is not handed on behind an undocumented one after %s, which may have carried it",
    (_, name, leftOut) => {
      expect(absentIn(eventOf(bodyWith(`,"${name}":"1"`)))).toEqual(leftOut);
      expect(absentIn(eventOf(bodyWith(`,"${name}":1`)))).toEqual(leftOut);
    },
  );

  it("is handed on behind one that a field which is always there divides from it", () => {
    expect(absentIn(eventOf(bodyWith(',"accountName":"1","d":"2","pa":"3"')))).toEqual([]);
  });

  it("is handed on behind a declared one, and not behind a further one after that", () => {
    expect(absentIn(eventOf(bodyWith(',"fee":"1"'), ["fee"]))).toEqual([]);
    expect(absentIn(eventOf(bodyWith(',"aa":"0","fee":"1"'), ["fee"]))).toEqual([]);
    expect(absentIn(eventOf(bodyWith(',"fee":"1","final":"2"'), ["fee"]))).toEqual(["merchantId", "message"]);
    expect(absentIn(eventOf(bodyWith(',"fee":"1","final":"2"'), ["final"]))).toEqual([]);
  });

  it("that is known divides the next one from what is undocumented", () => {
    const { merchantId } = callbackFields();
    const { rawBody } = signText(bodyWith(',"fee":"1"'), privateKey);
    const expecting = { publicKey, expect: { merchantId: String(merchantId) } };
    expect(absentIn(verifyPaymentCallback(rawBody, expecting).event)).toEqual([]);
  });

  it("by which a resolver chose the keys is in every body that is run", async () => {
    const t = await setUp({ payments: { publicKey: async () => ({ tenant: "m", keys: publicKey }) } });
    await t.post("payments", signText(bodyWith(',"fee":"1"'), privateKey));
    const [event] = t.ran as PaymentEvent[];
    expect(absentIn(event as PaymentEvent)).toEqual([]);
  });

  it("cannot be made of the end of an undocumented one", async () => {
    const genuine = callbackFields({ phone: "251900000000&providerTxId=FORGED", providerTxId: undefined });
    const { signature } = JSON.parse(
      Buffer.from(signPaymentCallback(genuine, privateKey).rawBody).toString("utf8"),
    ) as { signature: string };
    const forged = { ...genuine, phone: "251900000000", providerTxId: "FORGED", signature };
    const rawBody = Buffer.from(JSON.stringify(forged));
    expect(verifyPaymentCallback(rawBody, { publicKey }).event).not.toHaveProperty("providerTxId");
  });

  it("that is left out is warned about, once", async () => {
    const t = await setUp({ payments: { publicKey } });
    for (const payTxnId of ["t-1", "t-2"]) {
      const fields = callbackFields({ payTxnId, phone: "251900000000" });
      expect(await t.post("payments", signPaymentCallback(fields, privateKey))).toMatchObject({
        status: 200,
      });
    }
    const warnings = t.notices.flatMap((notice) => (notice.type === "warning" ? [notice.what] : []));
    expect(warnings.filter((what) => what.includes("providerTxId"))).toHaveLength(1);
    expect(t.ran).toHaveLength(2);
  });
});

describe("nulls", () => {
  it("can be added to a signed body without breaking its signature, and change nothing", () => {
    const text = bodyWith("");
    const signed = signText(text, privateKey);
    const grown = Buffer.from(signed.rawBody).toString("utf8").replace("{", '{"zone":null,"fee":null,');
    const { event } = verifyPaymentCallback(Buffer.from(grown), { publicKey });
    expect(event).toEqual(verifyPaymentCallback(signed.rawBody, { publicKey }).event);
  });

  it("make the same event of a body that differs in bytes: it is recognised as a copy", async () => {
    const t = await setUp({ payments: { publicKey } });
    const signed = signText(bodyWith(""), privateKey);
    const grown = Buffer.from(signed.rawBody).toString("utf8").replace("{", '{ "fee": null,');
    await t.post("payments", signed);
    expect(await t.post("payments", { ...signed, rawBody: Buffer.from(grown) })).toMatchObject({
      status: 200,
    });
    expect(t.ran).toHaveLength(1);
    expect(t.notices.map(({ type }) => type)).toContain("duplicate");
  });
});

describe("the event", () => {
  it("is frozen, without a prototype, and so is what is extra", async () => {
    const t = await setUp({ payments: { publicKey } });
    await t.post("payments", signText(bodyWith(',"fee":1'), privateKey));
    const [event] = t.ran as PaymentEvent[];
    for (const part of [event, event?.extra]) {
      expect(Object.getPrototypeOf(part)).toBeNull();
      expect(Object.isFrozen(part)).toBe(true);
    }
    expect((event as unknown as Record<string, unknown>).constructor).toBeUndefined();
    expect(String(Reflect.get(event?.extra ?? {}, "toString"))).toBe("undefined");
    expect(() => Object.assign(event ?? {}, { status: "FAILED" })).toThrow(TypeError);
  });

  it("has exactly the documented fields, extra and source", () => {
    expect(Object.keys(eventOf(bodyWith(""))).sort()).toEqual([
      ...["amount", "callbackUrl", "event", "extra", "merchantId", "message", "payTxnId", "providerTxId"],
      ...["referenceId", "source", "status", "timestamp", "userId"],
    ]);
    expect(eventOf(bodyWith("")).source).toBe("callback");
  });

  it("lacks optional fields that are null or missing, instead of having them empty", () => {
    const fields = callbackFields({
      message: null,
      providerTxId: undefined,
      merchantId: null,
      userId: undefined,
    });
    const { event } = verifyPaymentCallback(signPaymentCallback(fields, privateKey).rawBody, { publicKey });
    for (const name of ["message", "providerTxId", "merchantId", "userId"]) expect(name in event).toBe(false);
  });

  it("cannot be given a field named extra or source by the sender", () => {
    const event = eventOf(bodyWith(',"extra":"x"'));
    expect({ ...event.extra }).toEqual({ extra: "x" });
    expect(thrownBy(() => eventOf(bodyWith(',"source":"lookup"'))).code).toBe("ERR_EVENT_AMBIGUOUS");
    expect(eventOf(bodyWith(',"source":"lookup"'), ["source"])).toMatchObject({
      source: "callback",
      extra: { source: "lookup" },
    });
  });

  it.each(['"__proto__":{"admin":true}', '"__proto__":"x"', '"constructor":"x"', '"prototype":"x"'])(
    "is not made of a body with %s",
    (member) => {
      expect(thrownBy(() => eventOf(bodyWith(`,${member}`))).code).toBe("ERR_EVENT_MALFORMED");
      expect(({} as { admin?: boolean }).admin).toBeUndefined();
    },
  );
});

describe("payments.extraFields", () => {
  it.each([
    "amount",
    "userId",
    "signature",
    "",
    "a b",
    "1a",
    "constructor",
    "__proto__",
    "a".repeat(65),
    5,
    null,
  ])("cannot list %j", async (name) => {
    const extraFields = [name as string];
    const error = await rejectedBy((async () => setUp({ payments: { publicKey, extraFields } }))());
    expect(error.code).toBe("ERR_OPTION_INVALID");
    expect(error.message).toContain("payments.extraFields");
  });
});
