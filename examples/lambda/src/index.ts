import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { createReceiver } from "@payhooks/core";
import { redisInbox } from "@payhooks/core/redis";
import { connectWebhooks, paymentCallbacks, runQueue } from "@payhooks/lambda";

const sqs = new SQSClient({});
const shared = {
  payments: { publicKey: process.env.PAY_PUBLIC_KEY },
  connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
  inbox: redisInbox(process.env.REDIS_URL),
};

/** Accepts deliveries, and sends the eventId of each event to the queue. The message is only a hint: the event is in the inbox. */
const accepting = createReceiver({
  ...shared,
  run: "elsewhere",
  notifyWorker: async (MessageBody) => {
    await sqs.send(new SendMessageCommand({ QueueUrl: process.env.WORK_QUEUE_URL, MessageBody }));
  },
});

/** The functions of two routes. */
export const pay = paymentCallbacks(accepting);
export const connect = connectWebhooks(accepting);

/** Runs the handlers. */
const working = createReceiver(shared);
// A function runs on SUCCESS only. ctx.effectId is the same on every retry: save it with the credit, in a unique column.
working.onDeposit(async (deposit, ctx) => {
  console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
});
working.onSettlementApproved(async ({ data }) => console.log(`book ${data.id}: ${data.amount}`));
working.ignore("WITHDRAWAL").ignore("settlement.declined");
working.ignore("connected_account.approved").ignore("connected_account.declined");

/** The function that the queue calls. */
export const queue = runQueue(working);

/** The function that a timer calls, once a minute: retries, and hints that were lost. */
export const timer = () => working.work({ deadlineMs: 50_000 });
