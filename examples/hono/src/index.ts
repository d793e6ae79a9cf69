import { serve } from "@hono/node-server";
import { createReceiver, memoryInbox } from "@payhooks/core";
import { connectWebhooks, paymentCallbacks } from "@payhooks/hono";
import { Hono } from "hono";

const receiver = createReceiver({
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
  inbox: memoryInbox(), // loses acknowledged events when the process dies: see docs/guides/inboxes.md
});

// A function runs on SUCCESS only. ctx.effectId is the same on every retry: save it with the credit, in a unique column.
receiver.onDeposit(async (deposit, ctx) => {
  console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
});
receiver.onSettlementApproved(async ({ data }) => console.log(`book ${data.id}: ${data.amount}`));
receiver.ignore("WITHDRAWAL").ignore("settlement.declined");
receiver.ignore("connected_account.approved").ignore("connected_account.declined");

const app = new Hono();
app.all("/callbacks/pay", paymentCallbacks(receiver));
app.all("/webhooks/connect", connectWebhooks(receiver));
const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, (address) =>
  console.log("listening", address),
);

async function stop() {
  server.close();
  await receiver.close({ graceMs: 10_000 });
  if ("closeAllConnections" in server) server.closeAllConnections();
}
// Ctrl-C and PM2 send SIGINT, orchestrators send SIGTERM. npm may pass on the same signal twice.
process.on("SIGTERM", stop).on("SIGINT", stop);
