/** The Express adapter as it comes, in a process of its own, with a way to ask for its memory. */
import type { AddressInfo } from "node:net";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";

const receiver = createReceiver({
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
  inbox: memoryInbox(),
  bodyTimeoutMs: 2_000,
  logger: { info: () => {}, warn: () => {}, error: () => {} },
});
receiver.onDeposit(() => {}).ignore("WITHDRAWAL");
receiver.onSettlementApproved(() => {}).ignore("settlement.declined");
receiver.ignore("connected_account.approved").ignore("connected_account.declined");

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
app.use("/webhooks/connect", connectWebhooks(receiver));
app.get("/memory", (_request, response) => {
  globalThis.gc?.();
  response.json({ bytes: process.memoryUsage().rss });
});
const server = app.listen(0, "127.0.0.1", () => {
  console.log(`listening on ${(server.address() as AddressInfo).port}`);
});
