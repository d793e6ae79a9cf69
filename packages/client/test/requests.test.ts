import { describe, expect, it } from "vitest";
import { createClient } from "../src/index.ts";
import { apiKey, checkout, keys, payment, wireTransaction, withdrawal } from "./fixtures.ts";
import { json, startService } from "./service.ts";

describe("a direct payment", () => {
  it("is one POST with the key, and the amount as a number with the digits that were given", async () => {
    const service = await startService(json({ success: true, data: { id: "t-1" } }));
    const client = createClient({ baseUrl: service.url, ...keys });
    const answer = await client.pay({
      ...payment,
      amount: "10.00",
      description: 'Two "coffees" & cake',
      callback_url: "https://merchant.example/callbacks/pay?a=1&b=2",
      redirects: { success_url: "https://shop.example/ok", failure_url: "https://shop.example/no" },
    });
    expect(answer).toEqual({
      httpStatus: 200,
      data: { id: "t-1" },
      message: undefined,
      raw: '{"success":true,"data":{"id":"t-1"}}',
      transactionId: "t-1",
    });
    expect(service.seen).toHaveLength(1);
    const [{ method, path, headers, body } = never()] = service.seen;
    expect([method, path]).toEqual(["POST", "/api/v2/payment/direct"]);
    expect(headers).toMatchObject({
      "x-api-key": `${keys.publicKey}:${keys.secretKey}`,
      "content-type": "application/json",
      accept: "application/json",
    });
    expect(body).toBe(
      '{"amount":10.00,"currency":"ETB","phone_number":"251911000000","medium":"TELEBIRR",' +
        '"description":"Two \\"coffees\\" & cake","reference":"order-1",' +
        '"callback_url":"https://merchant.example/callbacks/pay?a=1&b=2",' +
        '"redirects":{"success_url":"https://shop.example/ok","failure_url":"https://shop.example/no"}}',
    );
  });

  it("carries merchant_pays_fee for USD, undocumented fields, and the amount as text when told so", async () => {
    const service = await startService(json(""));
    const client = createClient({ baseUrl: service.url, ...keys, amountAs: "string" });
    const answer = await client.pay({
      ...payment,
      currency: "USD",
      merchant_pays_fee: false,
      extra: { note: "x", nested: { a: [1] } },
    });
    expect(service.seen[0]?.body).toBe(
      '{"amount":"10.50","currency":"USD","phone_number":"251911000000","medium":"TELEBIRR",' +
        '"reference":"order-1","merchant_pays_fee":false,"note":"x","nested":{"a":[1]}}',
    );
    expect(answer).toMatchObject({ raw: "", transactionId: undefined, data: undefined });
  });
});

describe("a withdrawal", () => {
  it("is one POST; what the specification does not show goes into extra", async () => {
    const service = await startService(
      json({ transaction_id: "t-2", id: "other", message: "accepted" }, 202),
    );
    const client = createClient({ baseUrl: service.url, ...keys });
    const answer = await client.withdraw({ ...withdrawal, extra: { account_number: "1000123" } });
    expect(answer).toMatchObject({ httpStatus: 202, transactionId: "t-2", message: "accepted" });
    expect(service.seen).toMatchObject([
      {
        method: "POST",
        path: "/api/v2/payment/withdrawal",
        body: '{"amount":99.00,"reference":"payout-1","account_number":"1000123"}',
      },
    ]);
  });
});

describe("a checkout session", () => {
  it("is one POST, with redirects named success and failed", async () => {
    const data = { id: "t-3", checkout_url: "https://pay.example/c/1" };
    const service = await startService(json({ success: true, data }, 201));
    const client = createClient({ baseUrl: `${service.url}/gateway/`, ...keys });
    const answer = await client.checkout(checkout);
    expect(answer).toMatchObject({ httpStatus: 201, transactionId: "t-3", checkoutUrl: data.checkout_url });
    expect(service.seen).toMatchObject([
      {
        method: "POST",
        path: "/gateway/api/v2/payment/checkout",
        body:
          '{"amount":10.50,"currency":"ETB","phone_number":"251911000000","reference":"order-1",' +
          '"redirects":{"success":"https://shop.example/thanks","failed":"https://shop.example/sorry"},' +
          '"supported_mediums":["MPESA","CBE"]}',
      },
    ]);
  });

  it("takes no script for the address of the hosted page", async () => {
    const service = await startService(json({ data: { url: "javascript:alert(1)" } }));
    const client = createClient({ baseUrl: service.url, ...keys });
    expect((await client.checkout(checkout)).checkoutUrl).toBeUndefined();
  });
});

describe("look-ups", () => {
  it.each([
    ["order-1", "order-1"],
    ["a/b c?d#e", "a%2Fb%20c%3Fd%23e"],
    ["100%&ü", "100%25%26%C3%BC"],
  ])("put the reference %j into the path as %s", async (reference, encoded) => {
    const service = await startService(json({ success: true, data: { ...wireTransaction, reference } }));
    const client = createClient({ baseUrl: service.url, ...keys });
    expect((await client.transactionByReference(reference))?.reference).toBe(reference);
    expect(service.seen).toMatchObject([
      { method: "GET", path: `/api/v2/payment/transaction/ref/${encoded}`, body: "" },
    ]);
    expect(service.seen[0]?.headers["x-api-key"]).toBe(`${keys.publicKey}:${keys.secretKey}`);
    expect(service.seen[0]?.headers["content-type"]).toBeUndefined();
  });

  it("by id use the other path", async () => {
    const service = await startService(json({ success: true, data: { ...wireTransaction, id: "t/1" } }));
    const client = createClient({ baseUrl: service.url, ...keys });
    expect((await client.transactionById("t/1"))?.id).toBe("t/1");
    expect(service.seen).toMatchObject([{ method: "GET", path: "/api/v2/payment/transaction/t%2F1" }]);
  });

  it.each([".", "..", "", "   ", "a\nb", "a\u0000", "\ud800"])(
    "refuse %j, which no path can carry",
    async (text) => {
      const service = await startService(json({}));
      const client = createClient({ baseUrl: service.url, ...keys });
      const code = text === "" ? "ERR_FIELD_MISSING" : "ERR_REFERENCE_INVALID";
      await expect(client.transactionByReference(text)).rejects.toMatchObject({ code, field: "reference" });
      await expect(client.transactionById(text)).rejects.toMatchObject({ field: "id" });
      expect(service.seen).toEqual([]);
    },
  );
});

describe("webhook settings", () => {
  const path = "/api/v2/connect/connected-accounts/webhook-settings";
  const settings = {
    webhook_url: "https://merchant.example/webhooks/connect",
    webhook_secret: "whsec_0123456789abcdef",
    webhook_enabled: true,
  };

  it("are set with a PUT under the API key alone", async () => {
    const service = await startService(json({ success: true, message: "saved" }));
    const client = createClient({ baseUrl: service.url, apiKey });
    expect(await client.setWebhookSettings(settings)).toMatchObject({ httpStatus: 200, message: "saved" });
    expect(service.seen).toMatchObject([{ method: "PUT", path, body: JSON.stringify(settings) }]);
    expect(service.seen[0]?.headers["x-api-key"]).toBe(apiKey);
  });

  it.each([{ success: true, data: settings }, settings])(
    "are read with a GET, wherever they stand",
    async (body) => {
      const service = await startService(json(body));
      const client = createClient({ baseUrl: service.url, apiKey });
      expect(await client.webhookSettings()).toMatchObject(settings);
      expect(service.seen).toMatchObject([{ method: "GET", path, body: "" }]);
    },
  );

  it("may come back without anything that is known", async () => {
    const service = await startService(json({ other: 1.1 }));
    const client = createClient({ baseUrl: service.url, apiKey });
    expect(await client.webhookSettings()).toMatchObject({ webhook_url: undefined, raw: '{"other":1.1}' });
  });
});

describe("one client for both kinds of key", () => {
  it("uses the keys for payments for both, without another", async () => {
    const service = await startService(json({ success: true }));
    await createClient({ baseUrl: service.url, ...keys }).webhookSettings();
    expect(service.seen[0]?.headers["x-api-key"]).toBe(`${keys.publicKey}:${keys.secretKey}`);
  });

  it("takes a pair as the key for connected accounts", async () => {
    const service = await startService(json({ error: `no: ${keys.secretKey}` }, 401));
    const client = createClient({ baseUrl: service.url, apiKey: `${keys.publicKey}:${keys.secretKey}` });
    await expect(client.webhookSettings()).rejects.toMatchObject({ body: { error: "no: [secret]" } });
    expect(service.seen[0]?.headers["x-api-key"]).toBe(`${keys.publicKey}:${keys.secretKey}`);
  });

  it("does not use the keys for payments in place of an empty one", async () => {
    const client = createClient({ baseUrl: "https://api.example.com", ...keys, apiKey: undefined });
    await expect(client.webhookSettings()).rejects.toMatchObject({
      code: "ERR_OPTION_MISSING",
      field: "apiKey",
    });
  });

  it.each([":sk", "pk:", "a:b:c"])("refuses the key %j for connected accounts", (key) => {
    expect(() => createClient({ baseUrl: "https://api.example.com", apiKey: key })).toThrow(
      expect.objectContaining({ code: "ERR_OPTION_INVALID", field: "apiKey" }),
    );
  });

  it("uses each where it belongs", async () => {
    const service = await startService(json({ success: true }));
    const client = createClient({ baseUrl: service.url, ...keys, apiKey });
    await client.pay(payment);
    await client.webhookSettings();
    expect(service.seen.map(({ headers }) => headers["x-api-key"])).toEqual([
      `${keys.publicKey}:${keys.secretKey}`,
      apiKey,
    ]);
  });
});

function never(): never {
  throw new Error("No request was seen.");
}
