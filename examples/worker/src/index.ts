import { createReceiver, type Receiver } from "@payhooks/core";
import { durableObjectInbox, type ObjectStorage, workAtAlarm } from "@payhooks/core/durable-object";
import {
  connectWebhooks,
  type FetchContext,
  type FetchHandler,
  paymentCallbacks,
} from "@payhooks/core/fetch";

interface Env {
  readonly PAY_PUBLIC_KEY: string;
  readonly CONNECT_WEBHOOK_SECRET: string;
  readonly DELIVERIES: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
}

type Context = FetchContext & { readonly storage: ObjectStorage };

/** The Durable Object: receives deliveries, keeps their events, and runs the handlers. */
export class Deliveries {
  readonly #context: Context;
  readonly #receiver: Receiver;
  readonly #routes: ReadonlyMap<string, FetchHandler<unknown>>;

  constructor(context: Context, env: Env) {
    const receiver = createReceiver({
      payments: { publicKey: env.PAY_PUBLIC_KEY },
      connect: { secret: env.CONNECT_WEBHOOK_SECRET },
      inbox: durableObjectInbox(context.storage),
    });
    receiver.onDeposit(async (deposit, ctx) => {
      console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
    });
    receiver.onSettlementApproved(async ({ data }) => console.log(`book ${data.id}: ${data.amount}`));
    receiver.ignore("WITHDRAWAL").ignore("settlement.declined");
    receiver.ignore("connected_account.approved").ignore("connected_account.declined");
    this.#context = context;
    this.#receiver = receiver;
    this.#routes = new Map([
      ["/callbacks/pay", paymentCallbacks(receiver)],
      ["/webhooks/connect", connectWebhooks(receiver)],
    ]);
  }

  async fetch(request: Request): Promise<Response> {
    const route = this.#routes.get(new URL(request.url).pathname);
    return route?.(request, undefined, this.#context) ?? new Response("not found", { status: 404 });
  }

  /** The platform calls this when an event is due: a retry, or one whose run was cut off. */
  alarm(): Promise<void> {
    return workAtAlarm(this.#receiver, this.#context.storage);
  }
}

export default {
  // One object receives everything.
  fetch: (request: Request, env: Env): Promise<Response> => env.DELIVERIES.getByName("all").fetch(request),
};
