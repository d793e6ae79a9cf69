import { createReceiver } from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";
import { sharedReceiver } from "@payhooks/next";

// Made with the first request, once per process: next build needs neither the secrets nor Redis.
export const receiver = sharedReceiver(() => {
  const receiver = createReceiver({
    payments: { publicKey: process.env.PAY_PUBLIC_KEY },
    connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
    inbox: redisInbox(process.env.REDIS_URL),
  });
  // A function runs on SUCCESS only. ctx.effectId is the same on every retry: save it with the credit, in a unique column.
  receiver.onDeposit(async (deposit, ctx) => {
    console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
  });
  receiver.onSettlementApproved(async ({ data }) => console.log(`book ${data.id}: ${data.amount}`));
  receiver.ignore("WITHDRAWAL").ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  return receiver;
});
