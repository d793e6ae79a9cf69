import { createReceiver } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { paymentCallbacks } from "@payhooks/express";
import express from "express";

const receiver = createReceiver({
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  inbox: sqliteInbox("payhooks.db"),
});
receiver.onDeposit(async (deposit, ctx) => {
  console.log(`credit ${deposit.amount} for ${deposit.referenceId}, once, as ${ctx.effectId}`);
});
receiver.ignore("WITHDRAWAL"); // otherwise withdrawals would be held for a person

const app = express();
app.use("/callbacks/pay", paymentCallbacks(receiver));
const server = app.listen(process.env.PORT ?? 3000);
server.once("listening", () => console.log("listening", server.address()));
