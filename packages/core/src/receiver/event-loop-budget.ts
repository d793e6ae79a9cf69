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
  /** Until when deliveries of this turn may continue at once (monotonic clock); null if none has begun in this turn. */
  #turnEndsAt: number | null = null;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Null if the delivery may continue at once. Otherwise resolves when it may. */
  waitForTurn(): Promise<void> | null {
    if (this.#waiting.size === 0) {
      const { monotonic, nextTurn } = this.#environment;
      const now = monotonic();
      if (this.#turnEndsAt === null) {
        this.#turnEndsAt = now + MAX_TURN_MS;
        nextTurn(() => this.#end());
        return null;
      }
      if (now < this.#turnEndsAt) return null;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #end(): void {
    this.#turnEndsAt = null;
    if (this.#waiting.size > 0) void this.#startWaiting();
  }

  async #startWaiting(): Promise<void> {
    const { monotonic, nextTurn } = this.#environment;
    const turnEndsAt = monotonic() + MAX_TURN_MS;
    this.#turnEndsAt = turnEndsAt;
    do {
      this.#waiting.shift()?.();
      // Lets the delivery do its work now, so that its work counts in this turn.
      await null;
    } while (this.#waiting.size > 0 && monotonic() < turnEndsAt);
    nextTurn(() => this.#end());
  }
}
