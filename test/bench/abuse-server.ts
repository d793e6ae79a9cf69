/**
 * What is abused, in a process of its own, with a way to ask for its memory: the Express adapter as it comes, or, for
 * comparison, Express alone, which reads the body within the same bound and believes everything.
 */
import type { AddressInfo } from "node:net";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express, { type ErrorRequestHandler, type Express } from "express";
import { PATHS } from "../e2e/merchant-server.ts";
import { silent } from "../support/silent.ts";

const app = express();
if (process.argv[2] === "bare") mountBare(app);
else mountPayhooks(app);
app.get("/memory", (_request, response) => {
  globalThis.gc?.();
  response.json({ bytes: process.memoryUsage().rss });
});
const server = app.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.once("disconnect", () => process.exit());

function mountPayhooks(on: Express): void {
  const receiver = createReceiver({
    payments: { publicKey: process.env.PAY_PUBLIC_KEY },
    connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
    inbox: memoryInbox(),
    limits: { bodyTimeoutMs: 2_000 },
    logger: silent,
  });
  receiver.onDeposit(() => {}).ignore("WITHDRAWAL");
  receiver.onSettlementApproved(() => {}).ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  on.use(PATHS.payments, paymentCallbacks(receiver));
  on.use(PATHS.connect, connectWebhooks(receiver));
}

function mountBare(on: Express): void {
  on.use(express.raw({ type: () => true, limit: 65_536, inflate: false }));
  on.post(Object.values(PATHS), (_request, response) => {
    response.json({ received: true });
  });
  on.use(((error, _request, response, _next) => {
    response.status(error.status ?? 500).end();
  }) satisfies ErrorRequestHandler);
}
