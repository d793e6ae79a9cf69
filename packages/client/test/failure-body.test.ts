import { describe, expect, it } from "vitest";
import { type ClientError, createClient } from "../src/index.ts";
import { apiKey, checkout, keys, payment, withdrawal } from "./fixtures.ts";
import { errorOf, json, startService, testClock } from "./service.ts";

async function clientOf(body: unknown, status = 200) {
  const service = await startService(json(body, status));
  return createClient({ baseUrl: service.url, ...keys, apiKey, attempts: 1, clock: testClock() });
}

const settings = {
  webhook_url: "https://merchant.example/w",
  webhook_secret: "whsec_0123456789",
  webhook_enabled: true,
};

describe("a failure beside HTTP 200", () => {
  it.each([
    [{ success: false, message: "no" }],
    [{ success: false, status: "PENDING", transaction_id: "t-1" }],
    [{ status: "ERROR", message: "no" }],
    [{ status: "error", data: { id: "t-1" } }],
    [{ success: true, status: "ERROR", data: { id: "t-1" } }],
    [{ status: "FAILED", message: "no" }],
    [{ status: "FAILED", data: { id: "" } }],
  ])("is %j: of a payment, nobody knows the outcome; of a setting, it was refused", async (body) => {
    const client = await clientOf(body);
    for (const [call, reference] of [
      [() => client.pay(payment), payment.reference],
      [() => client.withdraw(withdrawal), withdrawal.reference],
      [() => client.checkout(checkout), checkout.reference],
    ] as const) {
      await expect(call()).rejects.toMatchObject({
        code: "ERR_OUTCOME_UNKNOWN",
        httpStatus: 200,
        reference,
        body,
      });
    }
    for (const call of [
      () => client.webhookSettings(),
      () => client.setWebhookSettings(settings),
      () => client.transactionById("t-1"),
      () => client.transactionByReference("order-1"),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: "ERR_REFUSED", httpStatus: 200, body });
    }
  });

  it.each([
    [{ success: true, status: "PENDING", data: { id: "t-1" } }],
    [{ status: "PENDING", transaction_id: "t-1" }],
    [{ status: "pending", transaction_id: "t-1" }],
    [{ status: "PENDING" }, undefined],
    [{ status: "SUCCESS", data: { transaction_id: "t-1" } }],
    [{ status: "FAILED", success: true }, undefined],
    [{ status: "FAILED", transaction_id: "t-1" }],
    [{ status: "FAILED", data: { id: "t-1" } }],
    [{ success: true, data: { id: "t-1", status: "ERROR" } }],
  ])("is not %j", async (body, transactionId: string | undefined = "t-1") => {
    const id =
      Object.hasOwn(body, "data") || Object.hasOwn(body, "transaction_id") ? transactionId : undefined;
    expect(await (await clientOf(body)).pay(payment)).toMatchObject({ httpStatus: 200, transactionId: id });
  });
});

describe("the body of a failure", () => {
  it.each<[what: string, body: unknown, read: Partial<ClientError>]>([
    ["a text alone", { success: false, message: "amount; phone" }, {}],
    [
      "a code and fields by name",
      { status: "ERROR", error_code: "VALIDATION", errors: { amount: ["too small", "odd"], phone: "wrong" } },
      { serviceCode: "VALIDATION", fields: { amount: "too small; odd", phone: "wrong" } },
    ],
    [
      "an error with details, and the id of the request outside",
      {
        error: { code: "invalid", message: "no", details: [{ field: "amount", issue: "too small" }] },
        request_id: "req_7",
      },
      { serviceCode: "invalid", requestId: "req_7", fields: { amount: "too small" } },
    ],
    [
      "errors in data",
      {
        success: false,
        data: { message: "no", errors: [{ field: "medium", message: "unknown" }, "odd", {}] },
      },
      { fields: { medium: "unknown" } },
    ],
    ["a code that is a number", { error: { code: 4001 } }, { serviceCode: "4001" }],
    ["members of other kinds", { error_code: {}, request_id: [], errors: "no", error: "text" }, {}],
    ["no object", ["x"], {}],
  ])("is read: %s", async (_what, body, read) => {
    const nothing = { serviceCode: undefined, requestId: undefined, fields: undefined };
    for (const status of [400, 500]) {
      const client = await clientOf(body, status);
      for (const call of [() => client.pay(payment), () => client.webhookSettings()]) {
        const { serviceCode, requestId, fields } = await errorOf<ClientError>(call());
        expect({ serviceCode, requestId, fields }).toEqual({ ...nothing, ...read });
      }
    }
  });

  it("shows no secret in a member, and not too much of it", async () => {
    const text = `${keys.secretKey} ${"x".repeat(5_000)}`;
    const body = { error_code: text, request_id: text, errors: { [keys.secretKey]: text, __proto__: text } };
    const error = await errorOf<ClientError>((await clientOf(body, 400)).pay(payment));
    for (const one of [error.serviceCode, error.requestId, error.fields?.["[secret]"]]) {
      expect(one).toMatch(/^\[secret\] x{491}$/);
    }
    expect(JSON.stringify({ ...error })).not.toContain(keys.secretKey);
  });
});
