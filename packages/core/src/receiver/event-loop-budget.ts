import { FifoQueue } from "../collections/fifo-queue.ts";
import type { Environment } from "../time/environment.ts";

/** For how long deliveries are begun in one turn of the event loop. */
const MAX_TURN_MS = 10;

/**
 * Bounds the work of one turn of the event loop. After a burst, the bodies of thousands of requests may end in one
 * turn. Without a bound, the process would verify and accept all of them in that turn, and answer the first delivery
 * only after the last.
 *
 * A single delivery is not delayed. When deliveries have taken {@link MAX_TURN_MS} of a turn, further deliveries wait for
 * the next turn, in their order.
 */
export class EventLoopBudget {
  readonly #environment: Environment;
  readonly #waiting = new FifoQueue<() => void>();
  /** Until when deliveries may continue at once (monotonic clock). */
  #turnEndsAt = Number.NEGATIVE_INFINITY;
  /** True until the turn is over in which `#turnEndsAt` was set. */
  #isTurnUnderWay = false;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Null if the delivery may continue at once. Otherwise resolves when it may. */
  waitForTurn(): Promise<void> | null {
    if (this.#waiting.size === 0) {
      const now = this.#environment.monotonic();
      if (now < this.#turnEndsAt) return null;
      if (!this.#isTurnUnderWay) {
        this.#begin(now);
        this.#environment.nextTurn(() => this.#end());
        return null;
      }
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #begin(now: number): void {
    this.#isTurnUnderWay = true;
    this.#turnEndsAt = now + MAX_TURN_MS;
  }

  #end(): void {
    if (this.#waiting.size === 0) this.#isTurnUnderWay = false;
    else void this.#startWaiting();
  }

  async #startWaiting(): Promise<void> {
    const { monotonic } = this.#environment;
    this.#begin(monotonic());
    do {
      this.#waiting.shift()?.();
      // Lets the delivery do its work now, so that its work counts in this turn.
      await null;
    } while (this.#waiting.size > 0 && monotonic() < this.#turnEndsAt);
    this.#environment.nextTurn(() => this.#end());
  }
}
