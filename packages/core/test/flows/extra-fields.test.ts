import {
  type PaymentEvent,
  type ReceiverOptions,
  type ServiceNames,
  serviceNames,
  verifyPaymentCallback,
} from "@payhooks/core";
import {
  anyCallbackFields,
  asDelivery,
  callbackFields,
  createTestKeys,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { setUp, signText, thrownBy } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const bodyWith = (members: string): string => `${JSON.stringify(callbackFields()).slice(0, -1)}${members}}`;
type ExtraFields = Readonly<Record<string, "always" | "sometimes">>;
const namesWith = (extra: ExtraFields): ServiceNames => serviceNames({ callback: { extra } });
const eventOf = (text: string, extra: ExtraFields = {}): PaymentEvent =>
  verifyPaymentCallback(signText(text, privateKey).rawBody, { publicKey, names: namesWith(extra) }).event;
const extraOf = (members: string, extra?: ExtraFields) => ({ ...eventOf(bodyWith(members), extra).extra });

describe("undocumented fields", () => {
  const members = ',"fee":1.50,"big":12345678901234567890,"channel":"USSD","final":true,"exp":1E+2';

  it("are not handed on if they are not declared", () => {
    expect(extraOf(members)).toEqual({});
    expect(extraOf(',"d":"2","n":"1"', { d: "always" })).toEqual({ d: "2" });
  });

  it("are handed on as the text in which they were written, if they are declared", () => {
    const always = {
      fee: "always",
      big: "always",
      channel: "always",
      final: "always",
      exp: "always",
    } as const;
    expect(extraOf(members, always)).toEqual({
      ...{ fee: "1.50", big: "12345678901234567890", channel: "USSD", final: "true", exp: "1E+2" },
    });
  });

  it("make one event, whether a value is spelt as a text, a number or a boolean", () => {
    const signed = signText(bodyWith(',"eligible":false'), privateKey);
    const text = Buffer.from(signed.rawBody).toString("utf8");
    const respelt = Buffer.from(text.replace('"eligible":false', '"eligible":"false"'));
    for (const rawBody of [signed.rawBody, respelt]) {
      const { event } = verifyPaymentCallback(rawBody, {
        publicKey,
        names: namesWith({ eligible: "always" }),
      });
      expect({ ...event.extra }).toEqual({ eligible: "false" });
    }
  });

  it("cannot be made of the end of another one", () => {
    const genuine = bodyWith(',"fullName":"Abebe&kycLevel=3"');
    expect(extraOf(',"fullName":"Abebe&kycLevel=3"')).toEqual({});
    const sent = signText(genuine, privateKey);
    const forged = Buffer.from(sent.rawBody)
      .toString("utf8")
      .replace('"Abebe&kycLevel=3"', '"Abebe","kycLevel":"3"');
    const { event } = verifyPaymentCallback(Buffer.from(forged), { publicKey });
    expect({ ...event.extra }).toEqual({});
    // Declared, it says that only the service chooses its value, and that such a value has no & in it.
    expect({ ...eventOf(genuine, { fullName: "always" }).extra }).toEqual({ fullName: "Abebe" });
  });

  it("must not be missing if they are declared as always sent", () => {
    const error = thrownBy(() => extraOf(',"fee":"2"', { fee: "always", n: "always" }));
    expect(error.code).toBe("ERR_EVENT_AMBIGUOUS");
    expect(error.message).toContain('n is declared as "always" in the names but missing');
    expect(extraOf(',"fee":"2"', { fee: "always", n: "sometimes" })).toEqual({ fee: "2" });
    expect(extraOf(',"fee":null', { fee: "sometimes" })).toEqual({});
  });

  it("never hold the signature", () => {
    const event = eventOf(bodyWith(',"fee":1'), { fee: "sometimes" });
    expect(event).not.toHaveProperty("signature");
    expect({ ...event.extra }).toEqual({ fee: "1" });
  });
});

describe("a declared field", () => {
  const declared = { currency: "always" } as const;
  const fields = anyCallbackFields({ callbackUrl: "https://m.example/cb", currency: "ETB" });
  const runs = (changes: Record<string, string>): PaymentEvent =>
    eventOf(JSON.stringify({ ...fields, ...changes }), declared);

  it("cannot be forged with a free text behind it and a callbackUrl that swallows the true one", () => {
    const genuine = { ...fields, customerName: "Abebe&currency=USD" };
    const { customerName: _, ...others } = genuine;
    const forged = {
      ...others,
      callbackUrl: `${fields.callbackUrl}&currency=ETB&customerName=Abebe`,
      currency: "USD",
    };
    const sent = signText(JSON.stringify(genuine), privateKey);
    const { signature } = JSON.parse(Buffer.from(sent.rawBody).toString("utf8")) as { signature: string };
    for (const body of [genuine, forged]) {
      const rawBody = Buffer.from(JSON.stringify({ ...body, signature }));
      const options = { publicKey, names: namesWith(declared) };
      expect(thrownBy(() => verifyPaymentCallback(rawBody, options)).message).toContain("differ in currency");
      // A URL that is known as a whole swallows nothing.
      const pinned = { ...options, expect: { callbackUrl: "https://m.example/cb" } };
      expect({ ...verifyPaymentCallback(rawBody, pinned).event.extra }).toEqual({ currency: "ETB" });
    }
  });

  it.each([
    ["its name in the query", { callbackUrl: "https://m.example/cb?shop=1&currency=ETB" }],
    [
      "its name and others in the query",
      { callbackUrl: "https://m.example/cb?shop=1&currency=ETB&b=2&userId=5" },
    ],
    ["its name as the first of the query", { callbackUrl: "https://m.example/cb?currency=ETB&d=2" }],
    ["a free text behind it", { customerName: "Abebe & sons&amount=1" }],
  ])("is certain with %s, since it can be nothing else", (_, changes) => {
    expect({ ...runs(changes).extra }).toEqual({ currency: "ETB" });
  });

  it("is held if its name in the URL's query, with a free text after it, could be the true field", () => {
    const callbackUrl = "https://m.example/cb?shop=1&currency=EUR&customerName=A";
    expect(thrownBy(() => runs({ callbackUrl })).message).toContain("differ in currency");
    const { event } = verifyPaymentCallback(
      signText(JSON.stringify({ ...fields, callbackUrl }), privateKey).rawBody,
      { publicKey, names: namesWith(declared), expect: { callbackUrl } },
    );
    expect({ ...event.extra }).toEqual({ currency: "ETB" });
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

  it("is handed on after an undocumented field if a field that is always sent stands between the two", () => {
    expect(absentIn(eventOf(bodyWith(',"accountName":"1","d":"2","pa":"3"')))).toEqual([]);
  });

  it("is handed on directly after a declared field, but not after one more declared field", () => {
    const absentWith = (members: string, extra: ExtraFields) => absentIn(eventOf(bodyWith(members), extra));
    for (const fee of ["always", "sometimes"] as const) {
      expect(absentWith(',"fee":"1"', { fee })).toEqual([]);
      expect(absentWith(',"aa":"0","fee":"1"', { fee })).toEqual([]);
      expect(absentWith(',"fee":"1","final":"2"', { fee })).toEqual(["merchantId", "message"]);
    }
    expect(absentWith(',"fee":"1","final":"2"', { final: "always" })).toEqual([]);
    // It could be the end of fee.
    expect(absentWith(',"fee":"1","final":"2"', { final: "sometimes" })).toEqual(["merchantId", "message"]);
  });

  it("is not certain only because it is expected, or because a resolver chose the keys by it: the callback is held", async () => {
    const { merchantId } = callbackFields();
    const sent = signText(bodyWith(',"fee":"1"'), privateKey);
    const asking = [
      { publicKey, expect: { merchantId: String(merchantId) } },
      { publicKey: () => ({ tenant: "m", keys: publicKey }) },
    ];
    for (const payments of asking) {
      const strict = await setUp({ payments });
      await strict.post("payments", sent);
      expect(strict.ran).toEqual([]);
      expect(await strict.held()).toMatchObject([
        {
          reason: "ambiguous",
          detail: expect.stringMatching(/differ in merchantId \(fee is not documented/),
        },
      ]);
      const lenient = await setUp({ payments, names: namesWith({ fee: "sometimes" }) });
      await lenient.post("payments", sent);
      expect(absentIn(lenient.ran[0] as PaymentEvent)).toEqual([]);
    }
  });

  it("cannot be forged for a resolver, or an expectation, out of an undocumented text", async () => {
    const genuine = anyCallbackFields({ fullName: "Abebe&merchantId=m-1", merchantId: null });
    const { signature } = JSON.parse(
      Buffer.from(signPaymentCallback(genuine, privateKey).rawBody).toString("utf8"),
    ) as { signature: string };
    const forged = { ...genuine, fullName: "Abebe", merchantId: "m-1", signature };
    for (const payments of [
      { publicKey, expect: { merchantId: "m-1" } },
      { publicKey: ({ merchantId = "" }) => ({ tenant: merchantId, keys: publicKey }) },
    ]) {
      const t = await setUp({ payments });
      await t.post("payments", asDelivery(forged));
      expect(t.ran).toEqual([]);
      expect(await t.held()).toMatchObject([{ reason: "ambiguous" }]);
    }
  });

  it("cannot be made of the end of an undocumented one", async () => {
    const genuine = anyCallbackFields({ phone: "251900000000&providerTxId=FORGED", providerTxId: undefined });
    const { signature } = JSON.parse(
      Buffer.from(signPaymentCallback(genuine, privateKey).rawBody).toString("utf8"),
    ) as { signature: string };
    const forged = { ...genuine, phone: "251900000000", providerTxId: "FORGED", signature };
    const rawBody = Buffer.from(JSON.stringify(forged));
    expect(verifyPaymentCallback(rawBody, { publicKey }).event).not.toHaveProperty("providerTxId");
  });

  it("is reported once in a warning if it is left out", async () => {
    const t = await setUp({ payments: { publicKey } });
    for (const payTxnId of ["t-1", "t-2"]) {
      const fields = anyCallbackFields({ payTxnId, phone: "251900000000" });
      expect(await t.post("payments", signPaymentCallback(fields, privateKey))).toMatchObject({
        status: 200,
      });
    }
    const warnings = t.notices.flatMap((notice) => (notice.type === "warning" ? [notice.what] : []));
    expect(warnings.filter((what) => what.includes("providerTxId"))).toHaveLength(1);
    expect(t.ran).toHaveLength(2);
  });
});

describe("a null in a signed body", () => {
  it("can be added without breaking the signature, and changes nothing", () => {
    const text = bodyWith("");
    const signed = signText(text, privateKey);
    const grown = Buffer.from(signed.rawBody).toString("utf8").replace("{", '{"zone":null,"fee":null,');
    const { event } = verifyPaymentCallback(Buffer.from(grown), { publicKey });
    expect(event).toEqual(verifyPaymentCallback(signed.rawBody, { publicKey }).event);
  });

  it("makes no other event: the body is recognised as a copy, although its bytes differ", async () => {
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

describe("the event of a callback", () => {
  it("is frozen and has no prototype, and the same is true of its extra fields", async () => {
    const t = await setUp({ payments: { publicKey } });
    await t.post("payments", signText(bodyWith(""), privateKey));
    const [event] = t.ran as PaymentEvent[];
    for (const part of [event, event?.extra]) {
      expect(Object.getPrototypeOf(part)).toBeNull();
      expect(Object.isFrozen(part)).toBe(true);
    }
    expect((event as unknown as Record<string, unknown>).constructor).toBeUndefined();
    expect(String(Reflect.get(event?.extra ?? {}, "toString"))).toBe("undefined");
    expect(() => Object.assign(event ?? {}, { status: "FAILED" })).toThrow(TypeError);
  });

  it("has exactly the documented fields, extra and arrivedBy", () => {
    expect(Object.keys(eventOf(bodyWith(""))).sort()).toEqual([
      ...[
        "amount",
        "arrivedBy",
        "callbackUrl",
        "event",
        "extra",
        "merchantId",
        "message",
        "payTxnId",
        "providerTxId",
      ],
      ...["referenceId", "status", "timestamp", "userId"],
    ]);
    expect(eventOf(bodyWith("")).arrivedBy).toBe("callback");
  });

  it("has no property for an optional field that is null or missing", () => {
    const fields = anyCallbackFields({
      message: null,
      providerTxId: undefined,
      merchantId: null,
      userId: undefined,
    });
    const { event } = verifyPaymentCallback(signPaymentCallback(fields, privateKey).rawBody, { publicKey });
    for (const name of ["message", "providerTxId", "merchantId", "userId"]) expect(name in event).toBe(false);
  });

  it("cannot be given a field named extra or arrivedBy by the sender", () => {
    expect({ ...eventOf(bodyWith(',"extra":"x"')).extra }).toEqual({});
    expect(eventOf(bodyWith(',"arrivedBy":"lookup"'), { arrivedBy: "always" })).toMatchObject({
      arrivedBy: "callback",
      extra: { arrivedBy: "lookup" },
    });
  });

  it.each(['"__proto__":{"admin":true}', '"__proto__":"x"', '"constructor":"x"', '"prototype":"x"'])(
    "is not changed by a body with %s",
    (member) => {
      const event = eventOf(bodyWith(`,${member}`));
      expect(Object.getPrototypeOf(event)).toBeNull();
      expect({ ...event.extra }).toEqual({});
      expect(({} as { admin?: boolean }).admin).toBeUndefined();
    },
  );
});

/** The warnings at the start. */
async function warningsOf(options: ReceiverOptions): Promise<readonly string[]> {
  const t = await setUp(options);
  await t.post("payments", signPaymentCallback(callbackFields(), privateKey));
  return t.notices.flatMap((notice) => (notice.type === "warning" ? [`${notice.what} ${notice.fix}`] : []));
}

describe("a field that is declared as sometimes sent", () => {
  const url = "https://shop.example/cb?return=/cart";

  it("is not made of the end of a URL: nobody has signed it", () => {
    const callbackUrl = `${url}&currency=USD`;
    const genuine = anyCallbackFields({ callbackUrl });
    const { signature } = JSON.parse(
      Buffer.from(signPaymentCallback(genuine, privateKey).rawBody).toString("utf8"),
    ) as { signature: string };
    const forged = { ...genuine, callbackUrl: url, currency: "USD", signature };
    for (const body of [{ ...genuine, signature }, forged]) {
      const rawBody = Buffer.from(JSON.stringify(body));
      const options = { publicKey, names: namesWith({ currency: "sometimes" }) };
      expect({ ...verifyPaymentCallback(rawBody, options).event.extra }).toEqual({});
      const pinned = { ...options, expect: { callbackUrl } };
      expect({ ...verifyPaymentCallback(rawBody, pinned).event.extra }).toEqual({});
    }
  });

  it("is handed on if it cannot be the end of another text, or if its URL is known", () => {
    expect(extraOf(',"fee":"1"', { fee: "sometimes" })).toEqual({ fee: "1" });
    const text = JSON.stringify(anyCallbackFields({ callbackUrl: url, currency: "ETB" }));
    expect({ ...eventOf(text, { currency: "sometimes" }).extra }).toEqual({});
    const { event } = verifyPaymentCallback(signText(text, privateKey).rawBody, {
      ...{ publicKey, names: namesWith({ currency: "sometimes" }), expect: { callbackUrl: url } },
    });
    expect({ ...event.extra }).toEqual({ currency: "ETB" });
  });

  it("is reported at the start if it follows a free text, with advice", async () => {
    const free = { currency: "callbackUrl", note: "message", q: "providerTxId", zone: "userId" };
    for (const [name, before] of Object.entries(free)) {
      const [warning, ...others] = await warningsOf({
        payments: { publicKey },
        names: namesWith({ [name]: "sometimes" }),
      });
      expect(others).toEqual([]);
      expect(warning).toContain(`${name} is sent sometimes and follows ${before} in the signed string`);
      expect(warning).toContain(`say "always" for it`);
    }
    const payments = { publicKey };
    const silentOnes: readonly ReceiverOptions[] = [
      {
        payments: { publicKey, expect: { callbackUrl: url } },
        names: namesWith({ currency: "sometimes" }),
      },
      {
        payments,
        names: namesWith({ fee: "sometimes", phone: "sometimes", sum: "sometimes", ts: "sometimes" }),
      },
      { payments, names: namesWith({ currency: "always", zone: "always" }) },
    ];
    for (const options of silentOnes) expect(await warningsOf(options)).toEqual([]);
  });
});
