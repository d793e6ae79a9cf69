import { type TestEvent, testEvent } from "./events.ts";
import type { Booking } from "./ledger.ts";
import { seededRandom } from "./scope.ts";
import { keys } from "./system.ts";

/** Deposits and withdrawals: each PENDING and SUCCESS, in any order, and copies of them. */
export class Traffic {
  /** By the key of the event that books. */
  readonly bookings: Map<string, Booking> = new Map();
  readonly events: Map<string, TestEvent> = new Map();
  readonly #random: () => number;
  readonly #hangs: number;
  readonly #waiting: TestEvent[] = [];

  constructor(seed: number, hangs: number) {
    this.#random = seededRandom(seed);
    this.#hangs = hangs;
  }

  /** Any of those that wait: an event comes some time before or after its neighbours. */
  next(): TestEvent {
    while (this.#waiting.length < 12) this.#add();
    const at = Math.floor(this.#random() * this.#waiting.length);
    const [event] = this.#waiting.splice(at, 1);
    return event ?? this.next();
  }

  #add(): void {
    const isDeposit = this.#random() < 0.6;
    const amount = (1 + this.#random() * 1_000).toFixed(2);
    const manner = this.#random() < this.#hangs ? ("hangs" as const) : ("calm" as const);
    const event = isDeposit ? ("DEPOSIT" as const) : ("WITHDRAWAL" as const);
    const success = testEvent(keys.privateKey, { event, amount, manner });
    const { payTxnId } = success;
    const pending = testEvent(keys.privateKey, { event, amount, manner, status: "PENDING", payTxnId });
    this.bookings.set(success.key, { payTxnId, amount: isDeposit ? amount : `-${amount}` });
    for (const one of [success, pending]) this.events.set(one.key, one);
    this.#waiting.push(pending, success, success);
    if (this.#random() < 0.2) this.#waiting.push(success, pending);
  }
}
