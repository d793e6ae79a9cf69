import { type ServiceNamesOptions, serviceNames } from "@payhooks/core";
import {
  anyCallbackFields,
  asDelivery,
  connectEvent,
  createTestKeys,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { rejectedBy, setUp, signatureOf } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const payments = { publicKey };
const BRANDED: NonNullable<ServiceNamesOptions["callback"]> = {
  fields: { payTxnId: "acmeTxnId" },
  statuses: { FAILED: ["CANCELLED"] },
};
const names = serviceNames({ callback: BRANDED });

describe("a callback under the names of its service", () => {
  it("runs, and handlers find the neutral names", async () => {
    const t = await setUp({ payments, names });
    await t.post(
      "payments",
      signPaymentCallback(anyCallbackFields({ payTxnId: "tx-1" }), privateKey, { names }),
    );
    expect(t.ran).toMatchObject([{ payTxnId: "tx-1", status: "SUCCESS" }]);
    expect(t.ran[0]).not.toHaveProperty("wireStatus");
    expect(t.ran[0]).not.toHaveProperty("acmeTxnId");
  });

  it("has the status that the service's word means, and that word", async () => {
    const t = await setUp({ payments, names });
    const cancelled = anyCallbackFields({ status: "CANCELLED" });
    await t.post("payments", signPaymentCallback(cancelled, privateKey, { names }));
    expect(t.ran).toMatchObject([{ status: "FAILED", wireStatus: "CANCELLED" }]);
  });

  it("may lack the fields that are declared as absent", async () => {
    const dialect = serviceNames({
      callback: {
        fields: {
          payTxnId: "transaction_id",
          referenceId: "reference",
          callbackUrl: { sent: "absent" },
          merchantId: { sent: "absent" },
          providerTxId: { sent: "absent" },
          userId: { sent: "absent" },
        },
        extra: { currency: "always", medium: "sometimes" },
      },
    });
    const t = await setUp({ payments, names: dialect });
    const fields = anyCallbackFields({ currency: "ETB", medium: "CBE", referenceId: "order-1" });
    await t.post("payments", signPaymentCallback(fields, privateKey, { names: dialect }));
    expect(t.ran).toMatchObject([
      { referenceId: "order-1", callbackUrl: "", extra: { currency: "ETB", medium: "CBE" } },
    ]);
  });

  it("cannot be given a provider's id out of a customer's text", async () => {
    const genuine = anyCallbackFields({
      providerTxId: null,
      message: "Paid: shoes&providerTxId=BANK-FORGED",
    });
    const signed = signPaymentCallback(genuine, privateKey, { names });
    const { payTxnId, ...others } = genuine;
    const forged = {
      ...others,
      acmeTxnId: payTxnId,
      message: "Paid: shoes",
      providerTxId: "BANK-FORGED",
      signature: signatureOf(signed),
    };
    const t = await setUp({ payments, names });
    await t.post("payments", asDelivery(forged));
    expect(t.ran).toHaveLength(1);
    expect(t.ran[0]).not.toHaveProperty("providerTxId");
  });

  it("is held if the names are not configured, and the entry says what to set", async () => {
    const t = await setUp({ payments });
    await t.post("payments", signPaymentCallback(anyCallbackFields(), privateKey, { names }));
    expect(t.ran).toEqual([]);
    const [entry] = await t.held();
    expect(entry).toMatchObject({
      reason: "malformed",
      detail: expect.stringContaining('serviceNames({ callback: { fields: { payTxnId: "acmeTxnId" } } })'),
    });
    const mentions = t.notices.filter((notice) => JSON.stringify(notice).includes("acmeTxnId could be it"));
    expect(mentions.length).toBeGreaterThan(0);
  });

  it.each([
    ["cannot be read", { timestamp: "yesterday" }, {}],
    ["has another name", {}, { timestamp: "created_at" }],
  ])("is held, not refused, if its time %s", async (_, changes, fields) => {
    const theirs = serviceNames({ callback: { fields } });
    const t = await setUp({ payments });
    const sent = signPaymentCallback(anyCallbackFields(changes), privateKey, { names: theirs });
    expect((await t.post("payments", sent)).status).toBe(200);
    expect(await t.held()).toMatchObject([{ reason: "malformed" }]);
  });

  it.each([
    ["merchantId", { merchantId: "m-1" }],
    ["callbackUrl", { callbackUrl: "https://m.example/cb" }],
  ])("cannot be expected to have a %s that is absent", async (field, expected) => {
    const without = serviceNames({ callback: { fields: { [field]: { sent: "absent" } } } });
    const error = await rejectedBy(
      (async () => setUp({ payments: { publicKey, expect: expected }, names: without }))(),
    );
    expect(error.code).toBe("ERR_NAMES_INVALID");
  });
});

describe("a webhook under the names of its service", () => {
  it("is verified by its header", async () => {
    const secret = "whsec_0123456789abcdef";
    const branded = serviceNames({ connect: { signatureHeader: "X-AcmeConnect-Signature" } });
    const t = await setUp({ connect: { secret }, names: branded });
    const event = connectEvent("settlement.approved");
    const signed = signConnectWebhook(event, secret, { names: branded });
    expect((await t.post("connect", signed)).status).toBe(200);
    const neutral = await t.post("connect", signConnectWebhook(event, secret));
    expect(neutral.status).toBe(400);
  });
});
