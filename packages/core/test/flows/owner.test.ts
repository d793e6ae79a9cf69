import type { KeyResolver, LookupTransaction, PaymentExpectations } from "@payhooks/core";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { KeyHint } from "../../src/flows/keyring.ts";
import type { PublicKeySource } from "../../src/signature/keys.ts";
import { rejectedBy, setUp } from "../receiving.ts";

const [a, b] = [createTestKeys(), createTestKeys()];
const KEYS: Readonly<Record<string, string>> = { A: a.publicKey, B: b.publicKey };

function transactionOf(merchant_id: string | undefined, id = "txn-1"): LookupTransaction {
  return {
    id,
    reference: `order of ${id}`,
    type: "DEPOSIT",
    status: "SUCCESS",
    base_amount: "500.00",
    callback_url: "",
    updated_at: new Date().toISOString(),
    merchant_id,
  };
}

/** Tenants as four kinds of resolvers name them. Each knows the merchants A and B. */
const resolvers: Readonly<Record<string, KeyResolver<PublicKeySource>>> = {
  "by merchantId": ({ merchantId }) => knownAs(merchantId),
  "by the tenant of the route, else by merchantId": ({ tenant, merchantId }) => knownAs(tenant ?? merchantId),
  "that believes every merchantId": ({ merchantId }) => ({ tenant: merchantId ?? "", keys: a.publicKey }),
  "that answers later": async ({ merchantId }) => knownAs(merchantId),
};

function knownAs(tenant: string | undefined) {
  const keys = tenant === undefined ? undefined : KEYS[tenant];
  return tenant === undefined || keys === undefined ? null : { tenant, keys };
}

describe.each(Object.entries(resolvers))("with a resolver %s, a look-up", (_, publicKey) => {
  it("of one merchant under the tenant of another is refused, and nothing of it is kept", async () => {
    const t = await setUp({ payments: { publicKey } });
    const error = await rejectedBy(t.receiver.payments.ingest(transactionOf("A"), { tenant: "B" }));
    expect(error).toMatchObject({
      code: "ERR_TRANSACTION_FOREIGN",
      fix: expect.stringContaining("{ tenant }"),
    });
    await t.receiver.work();
    expect(t.ran).toEqual([]);
    expect(await t.receiver.events.counts()).toMatchObject({ waiting: 0, held: 0 });
    const { outcome } = await t.receiver.payments.ingest(transactionOf("A"), { tenant: "A" });
    expect(outcome).toBe("new");
  });

  it("and the callback of its own merchant are one event", async () => {
    const t = await setUp({ payments: { publicKey } });
    const fields = callbackFields({ payTxnId: "txn-2", referenceId: "order of txn-2", merchantId: "A" });
    await t.post("payments", signPaymentCallback(fields, a.privateKey));
    const { outcome } = await t.receiver.payments.ingest(transactionOf("A", "txn-2"), { tenant: "A" });
    expect([outcome, t.ran.length]).toEqual(["duplicate", 1]);
  });

  it("without a merchant_id is refused, since nobody knows its merchant", async () => {
    const t = await setUp({ payments: { publicKey } });
    for (const merchant of [undefined, ""]) {
      const error = await rejectedBy(t.receiver.payments.ingest(transactionOf(merchant), { tenant: "B" }));
      expect(error.code).toBe("ERR_TRANSACTION_INVALID");
    }
  });
});

describe("the merchant of a look-up", () => {
  it("is asked for by merchant_id alone, and with the tenant only if no merchant has that merchant_id", async () => {
    const asked: KeyHint[] = [];
    const publicKey: KeyResolver<PublicKeySource> = (hint) => {
      asked.push(hint);
      return knownAs(hint.tenant ?? hint.merchantId);
    };
    const t = await setUp({ payments: { publicKey } });
    await t.receiver.payments.ingest(transactionOf("A"), { tenant: "A" });
    expect(asked).toEqual([{ merchantId: "A" }]);
    // This resolver knows the merchant by the tenant of its route only.
    await t.receiver.payments.ingest(transactionOf("4711", "txn-3"), { tenant: "B" });
    expect(asked.slice(1)).toEqual([{ merchantId: "4711" }, { tenant: "B", merchantId: "4711" }]);
    const error = await rejectedBy(t.receiver.payments.ingest(transactionOf("4711"), { tenant: "C" }));
    expect(error.code).toBe("ERR_TRANSACTION_FOREIGN");
  });

  it("is unknown if the resolver fails or does not answer: nothing is kept, and the call says why", async () => {
    const failing = await setUp({ payments: { publicKey: () => Promise.reject(new Error("no database")) } });
    const call = failing.receiver.payments.ingest(transactionOf("A"), { tenant: "A" });
    expect(await rejectedBy(call)).toMatchObject({ code: "ERR_RESOLVER_FAILED" });
    const silent = await setUp({ payments: { publicKey: () => new Promise(() => {}) } });
    const late = rejectedBy(silent.receiver.payments.ingest(transactionOf("A"), { tenant: "A" }));
    await silent.clock.advance("2s");
    expect(await late).toMatchObject({
      code: "ERR_RESOLVER_FAILED",
      message: expect.stringContaining("acceptTimeoutMs"),
    });
  });

  it.each<readonly [PaymentExpectations, string | undefined, "new" | "ERR_TRANSACTION_FOREIGN"]>([
    [{ merchantId: "A" }, "A", "new"],
    [{ merchantId: ["A", "B"] }, "B", "new"],
    [{ merchantId: "A" }, "B", "ERR_TRANSACTION_FOREIGN"],
    [{ merchantId: "A" }, undefined, "ERR_TRANSACTION_FOREIGN"],
    [{ callbackUrl: "https://a.example/cb" }, "B", "new"],
  ])("is held against payments.expect: %j, and merchant_id %j", async (expected, merchant, result) => {
    const t = await setUp({ payments: { publicKey: a.publicKey, expect: expected } });
    const call = t.receiver.payments.ingest(transactionOf(merchant));
    if (result === "new") expect((await call).outcome).toBe(result);
    else expect((await rejectedBy(call)).code).toBe(result);
  });
});
