import type { Cancellation } from "./cancellation.ts";
import type { PaymentStatus } from "./events.ts";
import type { HandlerContext } from "./handlers.ts";
import type { Lease } from "./inbox/inbox.ts";
import type { Logger } from "./notices.ts";

/** What a handler is told beside the event. */
export class RunContext implements HandlerContext {
  readonly effectId: string;
  readonly eventId: string;
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly previousStatus: PaymentStatus | null;
  readonly previousAmount: string | null;
  readonly tenant: string;
  readonly keyId: string | null;
  readonly log: Logger;
  readonly #cancellation: Cancellation;

  constructor(lease: Lease, handler: string, attempt: number, cancellation: Cancellation, log: Logger) {
    const { delivery } = lease.data;
    this.eventId = lease.data.eventId;
    this.effectId = `${this.eventId}.${handler}`;
    this.attempt = attempt;
    this.receivedAt = new Date(delivery.receivedAt);
    this.previousStatus = lease.data.previousStatus as PaymentStatus | null;
    this.previousAmount = lease.data.previousAmount;
    this.tenant = delivery.tenant;
    this.keyId = delivery.keyId;
    this.log = log;
    this.#cancellation = cancellation;
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal;
  }
}
