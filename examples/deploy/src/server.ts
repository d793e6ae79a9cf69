import { createReceiver } from "@payhooks/core";
import { postgresInbox } from "@payhooks/core/postgres";
import { connectWebhooks, live, paymentCallbacks, ready } from "@payhooks/express";
import express from "express";
import { Pool } from "pg";

const pool = new Pool({ connectionString: process.env.DATABASE_URL }).on("error", console.error);
const receiver = createReceiver({
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
  inbox: postgresInbox(pool),
});
receiver.onDeposit(async (deposit, ctx) => {
  console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
});
receiver.ignore("WITHDRAWAL");
receiver.onConnectedAccountApproved(async ({ data }) => console.log(`activate ${data.id}`));
receiver.ignore("connected_account.declined").ignore("settlement.approved").ignore("settlement.declined");

const app = express();
app.set("trust proxy", 1); // nginx, or the ingress
app.use("/callbacks/pay", paymentCallbacks(receiver));
app.use("/webhooks/connect", connectWebhooks(receiver));
app.get("/live", live(receiver));
app.get("/ready", ready(receiver));
const server = app.listen(process.env.PORT ?? 3000);
server.once("listening", () => console.log("listening", server.address()));

async function stop() {
  // From here on deliveries are answered 503. The proxy tries them elsewhere.
  const closing = receiver.close({ graceMs: 15_000 });
  server.close();
  const { unfinished } = await closing;
  server.closeAllConnections();
  await pool.end();
  console.log(`stopped, ${unfinished} left to the other processes`);
}
// Ctrl-C and PM2 send SIGINT. Docker, Kubernetes and systemd send SIGTERM.
process.once("SIGTERM", stop).once("SIGINT", stop);
