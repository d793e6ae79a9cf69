import { verifyConnectWebhook, verifyPaymentCallback } from "@payhooks/core";
import {
  anyCallbackFields,
  anyConnectEvent,
  callbackFields,
  connectEvent,
  createTestKeys,
  type Harness,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, expectTypeOf, it } from "vitest";

const { publicKey, privateKey } = createTestKeys();
const SECRET = "whsec_0123456789abcdef";

const eventOf = (fields: Parameters<typeof signPaymentCallback>[0]) =>
  verifyPaymentCallback(signPaymentCallback(fields, privateKey).rawBody, { publicKey }).event;

describe("builders of genuine deliveries", () => {
  it("do not compile with a field or a value that the specification does not have", () => {
    // @ts-expect-error: referenceId
    callbackFields({ referenceID: "order-1" });
    // @ts-expect-error: SUCCESS
    callbackFields({ status: "SUCESS" });
    // @ts-expect-error: callbacks never carry CANCELLED
    callbackFields({ status: "CANCELLED" });
    // @ts-expect-error: decimal text
    callbackFields({ amount: 10.5 });
    // @ts-expect-error: DEPOSIT or WITHDRAWAL
    callbackFields({ event: "REVERSAL" });
    // @ts-expect-error: settlement.approved
    connectEvent("setlement.approved");
    // @ts-expect-error: idempotency_key
    connectEvent("settlement.approved", { idempotencyKey: "evt_1" });
    // @ts-expect-error: a settlement has no kyc_status
    connectEvent("settlement.approved", { data: { kyc_status: "approved" } });
    // @ts-expect-error: an integer
    connectEvent("settlement.approved", { data: { amount: "5000" } });

    type Fields = Parameters<Harness["deposit"]>[0];
    expectTypeOf({ referenceId: "order-1", status: "FAILED" } as const).toExtend<Fields>();
    // @ts-expect-error: referenceId
    ({ referenceID: "order-1" }) satisfies Fields;
    // @ts-expect-error: SUCCESS
    ({ status: "SUCESS" }) satisfies Fields;
    // @ts-expect-error: the harness's method says which event it is
    ({ event: "WITHDRAWAL" }) satisfies Fields;
  });

  it("take what is given, and fill in the rest", () => {
    expect(eventOf(callbackFields({ referenceId: "order-1", status: "FAILED", userId: null }))).toMatchObject(
      {
        event: "DEPOSIT",
        referenceId: "order-1",
        status: "FAILED",
        amount: "10.500000",
      },
    );
    const { event } = verifyConnectWebhook(
      ...signedWebhook(connectEvent("settlement.declined", { data: { amount: 5000 } })),
    );
    expect(event.data).toMatchObject({ object: "settlement", amount: 5000, status: "declined" });
  });

  it("take a field that is undefined as not given", () => {
    const referenceId: string | undefined = undefined;
    expect(eventOf(callbackFields({ referenceId, message: undefined }))).toMatchObject({
      referenceId: expect.stringMatching(/^order-/),
      message: "Payment completed",
    });
    const sent = connectEvent("settlement.approved", { occurred_at: undefined, data: { id: undefined } });
    expect(sent.occurred_at).toMatch(/Z$/);
    expect(sent.data.id).toMatch(/^wd_/);
  });
});

describe("the builders for forgeries", () => {
  it("take any names and values", () => {
    expect(anyCallbackFields({ status: "SUCESS", referenceID: "order-1" })).toMatchObject({
      status: "SUCESS",
      referenceID: "order-1",
      amount: "10.500000",
    });
    const { message, ...without } = callbackFields();
    expect(Object.keys(anyCallbackFields({ message: undefined }))).toEqual(
      expect.arrayContaining(Object.keys(without)),
    );
    expect(JSON.stringify(anyCallbackFields({ message: undefined }))).not.toContain(String(message));
    expect(anyConnectEvent("loan.approved", { note: 1, data: [] })).toMatchObject({
      event: "loan.approved",
      note: 1,
      data: [],
    });
  });
});

function signedWebhook(event: object): [Uint8Array, string | undefined, { readonly secret: string }] {
  const { rawBody, headers } = signConnectWebhook(event, SECRET);
  return [rawBody, headers["x-connect-signature"], { secret: SECRET }];
}
