import { createReceiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";

const receiver = createReceiver({
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
  // A file on a local disk: an acknowledged event survives kill -9. See docs/guides/inboxes.md
  inbox: sqliteInbox(process.env.PAYHOOKS_FILE ?? "payhooks.db"),
});

// A function runs on SUCCESS only. ctx.effectId is the same on every retry: save it with the credit, in a unique column.
receiver.onDeposit(async (deposit, ctx) => {
  console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
});
receiver.onWithdrawal({
  SUCCESS: async (withdrawal) => console.log(`settle ${withdrawal.referenceId}`),
  FAILED: async (withdrawal) => console.log(`refund ${withdrawal.referenceId}: ${withdrawal.message}`),
});
receiver.onConnectedAccountApproved(async ({ data }) => console.log(`activate ${data.id}`));
receiver.onSettlementApproved(async ({ data }) => console.log(`book ${data.id}: ${data.amount}`));
receiver.ignore("connected_account.declined").ignore("settlement.declined");

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
app.use("/webhooks/connect", connectWebhooks(receiver));
const server = app.listen(process.env.PORT ?? 3000);
server.once("listening", () => console.log("listening", server.address()));

async function stop() {
  server.close();
  await receiver.close({ graceMs: 10_000 });
  server.closeAllConnections();
}
// Ctrl-C and PM2 send SIGINT, orchestrators send SIGTERM. npm may pass on the same signal twice.
process.on("SIGTERM", stop).on("SIGINT", stop);
