import { createReceiver, type PaymentExpectations, verifyPaymentCallback } from "@payhooks/core";
import { anyCallbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { rejectedBy, setUp, thrownBy } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const MERCHANT = "0b6f6e0c-6b0e-4f0e-9d7e-3f2f6a1c0001";
const URL = "https://merchant.example/callbacks/pay";
const signed = (fields: Record<string, string | null> = {}) =>
  signPaymentCallback(anyCallbackFields({ merchantId: MERCHANT, callbackUrl: URL, ...fields }), privateKey);

describe("payments.expect", () => {
  it.each<readonly [string, PaymentExpectations]>([
    ["one merchantId", { merchantId: MERCHANT }],
    ["several merchantIds", { merchantId: ["other", MERCHANT] }],
    ["one callbackUrl", { callbackUrl: URL }],
    ["several callbackUrls", { callbackUrl: ["https://other.example/", URL] }],
    ["both", { merchantId: MERCHANT, callbackUrl: URL }],
    ["nothing", {}],
  ])("lets a callback run that fits %s", async (_, expectations) => {
    const t = await setUp({ payments: { publicKey, expect: expectations } });
    expect(await t.post("payments", signed())).toMatchObject({ status: 200 });
    expect(t.ran).toHaveLength(1);
    expect(verifyPaymentCallback(signed().rawBody, { publicKey, expect: expectations }).event.status).toBe(
      "SUCCESS",
    );
  });

  const BOTH = { merchantId: MERCHANT, callbackUrl: URL };
  it.each<readonly [string, PaymentExpectations, Record<string, string | null>, RegExp]>([
    ["another merchant", BOTH, { merchantId: "other" }, /merchantId/],
    ["no merchant", BOTH, { merchantId: null }, /merchantId/],
    ["an empty merchant", BOTH, { merchantId: "" }, /merchantId/],
    ["the merchant in upper case", BOTH, { merchantId: MERCHANT.toUpperCase() }, /merchantId/],
    ["the merchant and more", BOTH, { merchantId: `${MERCHANT}0` }, /merchantId/],
    ["the merchant and less", BOTH, { merchantId: MERCHANT.slice(0, -1) }, /merchantId/],
    ["the merchant and a space", BOTH, { merchantId: `${MERCHANT} ` }, /merchantId/],
    ["another URL", BOTH, { callbackUrl: "https://other.example/callbacks/pay" }, /callbackUrl/],
    ["the URL and a slash", BOTH, { callbackUrl: `${URL}/` }, /callbackUrl/],
    ["the URL and a query", BOTH, { callbackUrl: `${URL}?a=1` }, /callbackUrl/],
    [
      "the URL's host in upper case",
      BOTH,
      { callbackUrl: URL.replace("merchant.", "MERCHANT.") },
      /callbackUrl/,
    ],
    ["the URL with http", BOTH, { callbackUrl: URL.replace("https", "http") }, /callbackUrl/],
  ])("holds a callback of %s as unexpected, and runs nothing", async (_, expectations, fields, detail) => {
    const t = await setUp({ payments: { publicKey, expect: expectations } });
    expect(await t.post("payments", signed(fields))).toMatchObject({ status: 200 });
    expect(t.ran).toEqual([]);
    expect(await t.held()).toMatchObject([{ reason: "unexpected", detail: expect.stringMatching(detail) }]);
    const error = thrownBy(() =>
      verifyPaymentCallback(signed(fields).rawBody, { publicKey, expect: expectations }),
    );
    expect(error.code).toBe("ERR_EVENT_UNEXPECTED");
    expect(error.message).toMatch(detail);
  });

  it.each([
    ["merchantId", undefined],
    ["merchantId", []],
    ["callbackUrl", undefined],
    ["callbackUrl", []],
  ] as const)("is not off because the variable of %s is missing: %j", async (name, value) => {
    const receiver = createReceiver({
      payments: { publicKey, expect: { [name]: value } },
      logger: silent,
    });
    receiver.onDeposit(() => {});
    const error = await rejectedBy(receiver.start());
    expect([error.code, error.message]).toEqual(["ERR_OPTION_MISSING", expect.stringContaining(name)]);
    const verifying = thrownBy(() =>
      verifyPaymentCallback(signed().rawBody, { publicKey, expect: { [name]: value } }),
    );
    expect(verifying.code).toBe("ERR_OPTION_MISSING");
  });

  it("refuses a name that it does not know", () => {
    const expectations = { merchantID: MERCHANT } as PaymentExpectations;
    const error = thrownBy(() => createReceiver({ payments: { publicKey, expect: expectations } }));
    expect([error.code, error.message]).toEqual([
      "ERR_OPTION_INVALID",
      expect.stringMatching(/payments\.expect .*"merchantID".*merchantId, callbackUrl/),
    ]);
  });

  it("does not accept a bad signature", async () => {
    const t = await setUp({ payments: { publicKey, expect: BOTH } });
    const { rawBody, headers } = signed();
    const changed = Buffer.from(Buffer.from(rawBody).toString().replace("SUCCESS", "FAILED"));
    expect(await t.post("payments", { rawBody: changed, headers })).toMatchObject({ status: 401 });
  });

  it("does not let an unexpected callback keep the true one with its payTxnId from running", async () => {
    const t = await setUp({ payments: { publicKey, expect: { merchantId: MERCHANT } } });
    await t.post("payments", signed({ payTxnId: "tx-1", merchantId: "other" }));
    await t.post("payments", signed({ payTxnId: "tx-1" }));
    expect(t.ran).toMatchObject([{ payTxnId: "tx-1", merchantId: MERCHANT }]);
    expect(await t.held()).toMatchObject([{ reason: "unexpected" }]);
  });

  it.each<readonly [string, unknown, RegExp]>([
    ["an empty merchantId", { merchantId: "" }, /merchantId/],
    ["an undefined merchantId in a list", { merchantId: [MERCHANT, undefined] }, /merchantId/],
    ["a merchantId that is a number", { merchantId: 5 }, /merchantId/],
    ["an empty callbackUrl", { callbackUrl: "" }, /callbackUrl/],
    ["an undefined callbackUrl in a list", { callbackUrl: [undefined] }, /callbackUrl/],
    ["a callbackUrl that is a path", { callbackUrl: "/callbacks/pay" }, /absolute URL/],
    ["a callbackUrl without a scheme", { callbackUrl: "merchant.example/callbacks" }, /absolute URL/],
    [
      "a URL that is another one followed by &",
      { callbackUrl: [`${URL}?a=1`, `${URL}?a=1&b=2`] },
      /begins with another one and "&"/,
    ],
    [
      "the same in the other order",
      { callbackUrl: [`${URL}?a=1&event=5`, `${URL}?a=1`] },
      /begins with another one and "&"/,
    ],
  ])("is refused at construction with %s", (_, expectations, message) => {
    const given = expectations as PaymentExpectations;
    const error = thrownBy(() => createReceiver({ payments: { publicKey, expect: given } }));
    expect(error.code).toBe("ERR_OPTION_INVALID");
    expect(error.message).toMatch(message);
    expect(error.fix).not.toBe("");
    const verify = () => verifyPaymentCallback(signed().rawBody, { publicKey, expect: given });
    expect(thrownBy(verify).code).toBe("ERR_OPTION_INVALID");
  });

  it("may pin two URLs of which one begins with the other, unless the rest begins with an &", () => {
    const callbackUrl = [`${URL}?a=1`, `${URL}?a=12`, `${URL}?a=1#b`, URL];
    expect(() => createReceiver({ payments: { publicKey, expect: { callbackUrl } } })).not.toThrow();
  });
});
