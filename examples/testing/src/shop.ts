import { type Receiver, RetryAfter } from "@payhooks/core";

/** The shop's orders. In production a table with a unique index on the effect. */
export interface Orders {
  /** Books a payment, unless this effect has booked it before. False where there is no such order. */
  book(reference: string, amount: string, effectId: string): Promise<boolean>;
}

/** Registers the shop's handlers: the program does so at its start, and so do its tests. */
export function registerShop(receiver: Receiver, orders: Orders): void {
  receiver.onDeposit(async (deposit, ctx) => {
    const booked = await orders.book(deposit.referenceId, deposit.amount, ctx.effectId);
    if (!booked) throw new RetryAfter(60 * 60_000); // the order may be on its way: look again in an hour
  });
  receiver.ignore("WITHDRAWAL");
}

/** Orders in memory, for tests. */
export class MemoryOrders implements Orders {
  readonly #references: Set<string>;
  readonly #booked = new Map<string, string>();

  constructor(references: readonly string[] = []) {
    this.#references = new Set(references);
  }

  open(reference: string): void {
    this.#references.add(reference);
  }

  async book(reference: string, amount: string, effectId: string): Promise<boolean> {
    if (!this.#references.has(reference)) return false;
    if (!this.#booked.has(effectId)) this.#booked.set(effectId, `${amount} for ${reference}`);
    return true;
  }

  get booked(): readonly string[] {
    return [...this.#booked.values()];
  }
}
