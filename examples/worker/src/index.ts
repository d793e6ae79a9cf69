import { createReceiver, memoryInbox } from "@payhooks/core";
import { connectWebhooks, type FetchContext, paymentCallbacks } from "@payhooks/core/fetch";

interface Env {
  readonly PAY_PUBLIC_KEY: string;
  readonly CONNECT_WEBHOOK_SECRET: string;
}

// A factory, since a Worker gets its secrets with the first request. Called once per isolate.
function receiver(env: Env) {
  const receiver = createReceiver({
    payments: { publicKey: env.PAY_PUBLIC_KEY },
    connect: { secret: env.CONNECT_WEBHOOK_SECRET },
    // Memory is per isolate. With ack: "handled" nothing is acknowledged before its handlers are done, so nothing is
    // lost; but two isolates do not know of each other: handlers must be idempotent by ctx.effectId.
    inbox: memoryInbox(),
    ack: "handled",
  });
  receiver.onDeposit(async (deposit, ctx) => {
    console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
  });
  receiver.onSettlementApproved(async ({ data }) => console.log(`book ${data.id}: ${data.amount}`));
  receiver.ignore("WITHDRAWAL").ignore("settlement.declined");
  receiver.ignore("connected_account.approved").ignore("connected_account.declined");
  return receiver;
}

const routes = new Map([
  ["/callbacks/pay", paymentCallbacks(receiver)],
  ["/webhooks/connect", connectWebhooks(receiver)],
]);

export default {
  async fetch(request: Request, env: Env, context: FetchContext): Promise<Response> {
    const route = routes.get(new URL(request.url).pathname);
    return route === undefined ? new Response("not found", { status: 404 }) : route(request, env, context);
  },
};
