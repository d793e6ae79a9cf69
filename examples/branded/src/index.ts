/**
 * A service with names of its own, ZebuPay. One file of names serves the sandbox, the client, the receiver and the
 * command line. Handlers see the neutral names of the specification. To run it, in two terminals:
 *
 *     npx payhooks sandbox --names names.json --state sandbox.json -- npx tsx src/index.ts
 *     npx payhooks send deposit --names names.json --state sandbox.json --to http://127.0.0.1:3000/callbacks/pay
 */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createClient } from "@payhooks/client";
import { createReceiver, parseServiceNames } from "@payhooks/core";
import { connectWebhooks, paymentCallbacks } from "@payhooks/express";
import express from "express";

const names = parseServiceNames(readFileSync(new URL("../names.json", import.meta.url), "utf8"));

const receiver = createReceiver({
  names,
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
});
receiver.onDeposit(({ referenceId, amount, extra }) => {
  console.log(`${referenceId} is paid: ${amount} ${extra.currency} by ${extra.medium}`);
});
receiver.onWithdrawal({
  SUCCESS: ({ referenceId }) => console.log(`${referenceId} is paid out`),
  // The service's own word says why: CANCELLED, which is a FAILED here.
  FAILED: ({ referenceId, status, wireStatus }) => console.log(`${referenceId} is ${status}: ${wireStatus}`),
});
receiver.onConnectedAccountApproved(({ data }) => console.log(`${data.id} is approved`));
receiver.ignore("connected_account.declined").ignore("settlement.approved").ignore("settlement.declined");

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
app.use("/webhooks/connect", connectWebhooks(receiver));
const server = app.listen(process.env.PORT ?? 3000);
await new Promise((resolve) => server.once("listening", resolve));
const shop = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

// The client writes the service's medium and path, and finds the id under the service's own name.
const client = createClient({
  baseUrl: process.env.PAY_BASE_URL,
  publicKey: process.env.PAY_API_PUBLIC_KEY,
  secretKey: process.env.PAY_API_SECRET_KEY,
  names,
  allowHttpLoopback: true,
});
const order = {
  amount: "10.50",
  currency: "ETB",
  phone_number: "251911000000",
  callback_url: `${shop}/callbacks/pay`,
} as const;
const { transactionId = "" } = await client.pay({ ...order, medium: "PAY", reference: "order-1" });
const found = await client.transactionById(transactionId);
console.log(`${found?.reference} was ordered by ${found?.medium}`);
// The sandbox cancels a payment with this reference.
await client.withdraw({ ...order, medium: "CBE", reference: "sbx-cancelled-1" });
const { webhook_url } = await client.webhookSettings();
console.log(`webhooks go to ${webhook_url}`);

async function stop() {
  server.close();
  await receiver.close({ graceMs: 10_000 });
  server.closeAllConnections();
}
process.on("SIGTERM", stop).on("SIGINT", stop);
