import { createHmac } from "node:crypto";
import { serviceNames } from "@payhooks/core";
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../src/index.ts";
import { type Callback, verifies } from "./support/signature.ts";
import { call, checkout, pay, payment, receiver, SETTINGS_PATH, start } from "./support/start.ts";

const names = serviceNames({
  callback: {
    fields: {
      payTxnId: "acmeTxnId",
      referenceId: "reference",
      callbackUrl: { name: "callback_url" },
      timestamp: "created_at",
      providerTxId: { name: "Provider", sent: "always" },
      merchantId: { sent: "absent" },
      userId: { sent: "absent" },
    },
    extra: { currency: "always", medium: "always", attempt: "sometimes" },
    statuses: { FAILED: ["CANCELLED"], SUCCESS: ["COMPLETED"] },
  },
  connect: { signatureHeader: "X-AcmeConnect-Signature", pathSegment: "acmeconnect" },
  api: { medium: "ACME", transactionIdFields: ["acme_transaction_id", "id"] },
});

/** The body of the callback of a payment, and the text that its signature covers. */
async function callbackOf(sandbox: Sandbox, reference: string, status: string) {
  const { attempts } = await sandbox.deliveries.waitFor({ reference, status, state: "delivered" });
  const [{ body, canonicalString } = never()] = attempts;
  return { body, canonicalString, fields: JSON.parse(body) as Record<string, string> };
}

function isGenuine(body: string, publicKey: string): boolean {
  return verifies(JSON.parse(body) as Callback, publicKey);
}

function never(): never {
  throw new Error("There was no attempt.");
}

describe("a callback under the names of a deployment", () => {
  it("has them in the body and in the signed string, in the order of code units", async () => {
    const sandbox = await start({ names });
    const merchant = await receiver();
    const { transaction } = sandbox.deposit({
      reference: "order-1",
      callback_url: merchant.url,
      medium: "PAY",
    });
    const { body, canonicalString, fields } = await callbackOf(sandbox, "order-1", "SUCCESS");
    expect(merchant.received.map((one) => one.body)).toEqual([body]);
    const signed = ["Provider", "acmeTxnId", "amount", "attempt", "callback_url", "created_at", "currency"];
    signed.push("event", "medium", "message", "reference", "status");
    expect(Object.keys(fields)).toEqual([...signed, "signature"]);
    expect(canonicalString).toBe(signed.map((name) => `${name}=${fields[name]}`).join("&"));
    expect(fields).toMatchObject({
      acmeTxnId: transaction.id,
      reference: "order-1",
      callback_url: merchant.url,
      status: "COMPLETED",
      currency: "ETB",
      medium: "ACME",
    });
    expect(isGenuine(body, sandbox.keys.publicKey)).toBe(true);
  });

  it("lacks in a PENDING one the fields that are sent sometimes, and has those that are always sent", async () => {
    const sandbox = await start({ names, outcome: [{ status: "PENDING" }] });
    const merchant = await receiver();
    sandbox.deposit({ reference: "order-2", callback_url: merchant.url });
    const { fields } = await callbackOf(sandbox, "order-2", "PENDING");
    expect(fields).toMatchObject({
      status: "PENDING",
      currency: "ETB",
      Provider: expect.stringMatching(/./),
    });
    expect(fields).not.toHaveProperty("attempt");
  });

  it("announces a cancelled transaction with the word for it, and otherwise not at all", async () => {
    const merchant = await receiver();
    const sandbox = await start({ names, outcome: "CANCELLED" });
    sandbox.deposit({ reference: "order-3", callback_url: merchant.url });
    expect((await callbackOf(sandbox, "order-3", "CANCELLED")).fields.status).toBe("CANCELLED");
    const failing = await start({ names, outcome: "FAILED" });
    failing.deposit({ reference: "order-4", callback_url: merchant.url });
    expect((await callbackOf(failing, "order-4", "FAILED")).fields.status).toBe("FAILED");
    const silent = await start({ names: serviceNames({}), outcome: "CANCELLED" });
    const { transaction } = silent.deposit({ reference: "order-5", callback_url: merchant.url });
    await expect.poll(() => silent.transactions.get(transaction.id)?.transaction.status).toBe("CANCELLED");
    expect(silent.deliveries.list()).toEqual([]);
  });

  it("is signed anew under them", async () => {
    const sandbox = await start({ names });
    const merchant = await receiver();
    sandbox.deposit({ reference: "order-6", callback_url: merchant.url });
    const delivery = await sandbox.deliveries.waitFor({ reference: "order-6", state: "delivered" });
    sandbox.deliveries.replay(delivery.id, { resign: true });
    await expect.poll(() => merchant.received.length).toBe(2);
    const [first, second] = merchant.received.map(({ body }) => JSON.parse(body) as Record<string, string>);
    expect(second?.created_at).not.toBe(first?.created_at);
    expect(Object.keys(second ?? {})).toEqual(Object.keys(first ?? {}));
    expect(isGenuine(merchant.received[1]?.body ?? "", sandbox.keys.publicKey)).toBe(true);
  });

  it("can be spoiled, dated back and re-split as any other", async () => {
    const sandbox = await start({ names });
    const merchant = await receiver();
    sandbox.faults.add({ kind: "bad-signature", reference: "order-7" });
    sandbox.faults.add({ kind: "stale-timestamp", reference: "order-8" });
    for (const reference of ["order-7", "order-8"])
      sandbox.deposit({ reference, callback_url: merchant.url });
    await expect.poll(() => merchant.received.length).toBe(2);
    const bodyOf = (reference: string) =>
      merchant.received.find(({ body }) => body.includes(`"${reference}"`))?.body ?? "";
    expect(isGenuine(bodyOf("order-7"), sandbox.keys.publicKey)).toBe(false);
    expect(isGenuine(bodyOf("order-8"), sandbox.keys.publicKey)).toBe(true);
    const { created_at } = JSON.parse(bodyOf("order-8")) as { created_at: string };
    expect(Date.now() - Date.parse(created_at)).toBeGreaterThan(29 * 24 * 3_600_000);
  });

  it("is re-split where the status follows the reference and a text follows it, and else is sent as it is", async () => {
    const merchant = await receiver();
    const safe = await start({ names });
    safe.faults.add({ kind: "resplit", reference: "order-10" });
    safe.deposit({ reference: "order-10", callback_url: merchant.url });
    await expect.poll(() => merchant.received.length).toBeGreaterThan(0);
    const [{ body: whole = "" } = {}] = merchant.received.splice(0);
    expect(JSON.parse(whole)).toMatchObject({ reference: "order-10", status: "FAILED" });
    expect(isGenuine(whole, safe.keys.publicKey)).toBe(true);
    const splittable = serviceNames({ callback: { fields: { payTxnId: "acmeTxnId", userId: "the_user" } } });
    const sandbox = await start({ names: splittable });
    sandbox.faults.add({ kind: "resplit", reference: "order-9" });
    sandbox.deposit({ reference: "order-9", callback_url: merchant.url });
    await expect.poll(() => merchant.received.length).toBeGreaterThan(0);
    const forged = JSON.parse(merchant.received[0]?.body ?? "") as Record<string, string>;
    expect(forged).toMatchObject({ referenceId: "order-9", status: "SUCCESS" });
    expect(forged.the_user).toContain("&status=FAILED&");
    expect(isGenuine(merchant.received[0]?.body ?? "", sandbox.keys.publicKey)).toBe(true);
  });
});

describe("the connected accounts under the names of a deployment", () => {
  it("have another path and another header", async () => {
    const sandbox = await start({ names });
    const merchant = await receiver();
    const key = { "X-API-Key": sandbox.keys.connectApiKey };
    const body = { webhook_url: merchant.url, webhook_secret: "whsec_1", webhook_enabled: true };
    const path = "/api/v2/acmeconnect/connected-accounts/webhook-settings";
    expect((await call(sandbox, "PUT", path, body, key)).status).toBe(200);
    expect((await call(sandbox, "GET", path, undefined, {})).status).toBe(401);
    expect((await call(sandbox, "GET", SETTINGS_PATH, undefined, key)).status).toBe(404);
    const { id } = sandbox.accounts.create();
    sandbox.faults.add({ kind: "bad-signature", flow: "connect" });
    sandbox.accounts.decide(id, "approved");
    await expect.poll(() => merchant.received.length).toBe(1);
    sandbox.accounts.decide(id, "approved");
    await expect.poll(() => merchant.received.length).toBe(2);
    const genuine = merchant.received.map((one) => {
      expect(one.headers).not.toHaveProperty("x-connect-signature");
      return (
        one.headers["x-acmeconnect-signature"] ===
        `sha256=${createHmac("sha256", "whsec_1").update(one.body).digest("hex")}`
      );
    });
    expect(genuine).toEqual([false, true]);
  });
});

describe("calls under the names of a deployment", () => {
  it("name the service's own medium as it does", async () => {
    const sandbox = await start({ names });
    const answer = await pay(sandbox, "POST", "/direct", payment({ medium: "ACME" }));
    expect(answer.status).toBe(200);
    expect(answer.body.data).toMatchObject({ medium: "ACME" });
    const shown = await pay(sandbox, "GET", `/transaction/${answer.body.data.id}`);
    expect(shown.body.data).toMatchObject({ medium: "ACME" });
    expect(sandbox.transactions.get(answer.body.data.id)?.order.medium).toBe("PAY");
    const refused = await pay(sandbox, "POST", "/direct", payment({ medium: "PAY" }));
    expect(refused.body.data.errors).toEqual([{ field: "medium", message: expect.stringMatching(/ACME$/) }]);
    const session = await pay(sandbox, "POST", "/checkout", checkout({ supported_mediums: ["ACME", "CBE"] }));
    expect(session.status).toBe(200);
    expect(sandbox.transactions.decide(session.body.data.id, "pay", "PAY").transaction.medium).toBe("ACME");
  });

  it("are answered with the id under its names, in data and outside", async () => {
    const sandbox = await start({ names });
    for (const [path, body] of [
      ["/direct", payment()],
      ["/withdrawal", payment()],
      ["/checkout", checkout()],
    ] as const) {
      const answer = JSON.parse((await pay(sandbox, "POST", path, body)).text);
      expect(answer.acme_transaction_id).toBe(answer.data.id);
      expect(answer.data).toMatchObject({
        acme_transaction_id: answer.data.id,
        transaction_id: answer.data.id,
      });
      const byReference = JSON.parse((await pay(sandbox, "GET", `/transaction/ref/${body.reference}`)).text);
      expect(byReference.data).not.toHaveProperty("acme_transaction_id");
    }
  });
});
