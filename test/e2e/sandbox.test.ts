import type { AddressInfo } from "node:net";
import { createClient } from "@payhooks/client";
import { createReceiver } from "@payhooks/core";
import { paymentCallbacks } from "@payhooks/express";
import { createSandbox } from "@payhooks/sandbox";
import express from "express";
import { describe, expect, it } from "vitest";

describe("client, sandbox and receiver together", () => {
  it("every call of the client is answered, and what it pays for arrives and runs once", async () => {
    const sandbox = await createSandbox({ delayMs: 0 });
    const receiver = createReceiver({ payments: { publicKey: sandbox.keys.publicKey } });
    const ran: string[] = [];
    receiver.onDeposit((deposit) => void ran.push(`${deposit.referenceId} ${deposit.amount}`));
    receiver.onWithdrawal({ FAILED: (withdrawal) => void ran.push(`${withdrawal.referenceId} failed`) });
    const app = express().use("/callbacks/pay", paymentCallbacks(receiver));
    const server = app.listen(0, "127.0.0.1");
    try {
      await new Promise((resolve) => server.once("listening", resolve));
      const callback_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks/pay`;
      const [publicKey, secretKey] = sandbox.keys.apiKey.split(":");
      const apiKey = sandbox.keys.connectApiKey;
      const client = createClient({
        baseUrl: sandbox.url,
        publicKey,
        secretKey,
        apiKey,
        allowHttpLoopback: true,
      });
      const order = { amount: "10.50", currency: "ETB", phone_number: "251911234567", callback_url } as const;

      sandbox.faults.add({ kind: "duplicate", reference: "order-1" });
      sandbox.script("payout-1", "FAILED");
      const paid = await client.pay({ ...order, medium: "TELEBIRR", reference: "order-1" });
      await client.withdraw({ ...order, medium: "CBE", reference: "payout-1" });
      const redirects = { success: "https://shop.example/paid", failed: "https://shop.example/failed" };
      const session = { ...order, redirects, supported_mediums: ["MPESA"] as const, reference: "order-2" };
      const { transactionId, checkoutUrl } = await client.checkout(session);
      expect(checkoutUrl).toBe(`${sandbox.url}/checkout/${transactionId}`);
      sandbox.transactions.decide(transactionId ?? "", "pay", "MPESA");

      await expect
        .poll(() => ran.toSorted())
        .toEqual(["order-1 10.500000", "order-2 10.500000", "payout-1 failed"]);
      const byId = await client.transactionById(paid.transactionId ?? "");
      expect(byId).toMatchObject({ reference: "order-1", status: "SUCCESS", base_amount: "10.5" });
      expect(await client.transactionByReference("order-1")).toEqual({ ...byId, extra: {} });
      expect(await client.transactionByReference("nobody")).toBe(null);
      const settings = {
        webhook_url: "https://merchant.example/hooks",
        webhook_secret: "whsec_0123456789abcdef",
        webhook_enabled: true,
      };
      await client.setWebhookSettings(settings);
      expect(await client.webhookSettings()).toMatchObject(settings);

      const headers = { "X-Connected-Merchant-Id": "cm_7" };
      const theirs = await client.pay({ ...order, medium: "TELEBIRR", reference: "order-3" }, { headers });
      expect(sandbox.transactions.get(theirs.transactionId ?? "")?.order.onBehalfOf).toBe("cm_7");
      const again = client.pay({ ...order, medium: "TELEBIRR", reference: "order-3" });
      await expect(again).rejects.toMatchObject({
        code: "ERR_BAD_REQUEST",
        serviceCode: "INVALID_REQUEST",
        fields: { reference: "must be unique; it was used before" },
      });
    } finally {
      server.close();
      server.closeAllConnections();
      await Promise.all([sandbox.close(), receiver.close()]);
    }
  });
});
