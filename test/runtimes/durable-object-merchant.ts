/** A Worker whose object says what it does. A deposit that is named so fails at its first attempt. */
import { createReceiver, type Receiver, RetryAfter } from "@payhooks/core";
import { durableObjectInbox, type ObjectStorage, workAtAlarm } from "@payhooks/core/durable-object";
import { type FetchContext, type FetchHandler, paymentCallbacks } from "@payhooks/core/fetch";

interface Env {
  readonly PAY_PUBLIC_KEY: string;
  readonly MERCHANT: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
}

type Context = FetchContext & { readonly storage: ObjectStorage };

/** Short, so that a test need not wait long for an event whose run was cut off. */
const LEASE_MS = 2_000;

export class Merchant {
  readonly #context: Context;
  readonly #receiver: Receiver;
  readonly #receive: FetchHandler<unknown>;

  constructor(context: Context, env: Env) {
    console.log("the object wakes");
    const receiver = createReceiver({
      payments: { publicKey: env.PAY_PUBLIC_KEY },
      inbox: durableObjectInbox(context.storage, { leaseMs: LEASE_MS }),
    });
    receiver.onDeposit(async ({ referenceId }, { attempt }) => {
      console.log(`${referenceId} begins, attempt ${attempt}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      const [, seconds] = /-fails-for-(\d+)s$/.exec(referenceId) ?? [];
      if (seconds !== undefined && attempt === 1) throw new RetryAfter(Number(seconds) * 1_000);
      console.log(`${referenceId} is done`);
    });
    receiver.ignore("WITHDRAWAL");
    this.#context = context;
    this.#receiver = receiver;
    this.#receive = paymentCallbacks(receiver);
  }

  fetch(request: Request): Promise<Response> {
    return this.#receive(request, undefined, this.#context);
  }

  alarm(): Promise<void> {
    console.log("the alarm rings");
    return workAtAlarm(this.#receiver, this.#context.storage);
  }
}

const worker = {
  fetch: (request: Request, { MERCHANT }: Env): Promise<Response> => MERCHANT.getByName("all").fetch(request),
};

export default worker;
