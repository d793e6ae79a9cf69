import { FirstInFirstOut } from "../collections/first-in-first-out.ts";
import type { Environment } from "../time/environment.ts";

/** For how long deliveries are begun in one turn of the event loop. */
const TURN_MS = 10;

/**
 * Bounds the work of one turn of the event loop. After a burst, the bodies of thousands of requests may end in one turn. Without a
 * bound, the process would verify and accept all of them in that turn, and answer the first delivery only after the last.
 *
 * A single delivery is not delayed. When deliveries have taken {@link TURN_MS} of a turn, further deliveries wait for the next turn,
 * in their order.
 */
export class EventLoopBudget {
  readonly #environment: Environment;
  readonly #waiting = new FirstInFirstOut<() => void>();
  /** Until when deliveries may continue at once (monotonic clock). */
  #until = Number.NEGATIVE_INFINITY;
  /** True until the turn is over in which `#until` was set. */
  #isUnderWay = false;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Null if the delivery may continue at once. Otherwise resolves when it may. */
  next(): Promise<void> | null {
    if (this.#waiting.size === 0) {
      const now = this.#environment.monotonic();
      if (now < this.#until) return null;
      if (!this.#isUnderWay) {
        this.#begin(now);
        this.#environment.nextTurn(() => this.#end());
        return null;
      }
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #begin(now: number): void {
    this.#isUnderWay = true;
    this.#until = now + TURN_MS;
  }

  #end(): void {
    if (this.#waiting.size === 0) this.#isUnderWay = false;
    else void this.#goOn();
  }

  async #goOn(): Promise<void> {
    const { monotonic } = this.#environment;
    this.#begin(monotonic());
    do {
      this.#waiting.shift()?.();
      // Lets the delivery do its work now, so that its work counts in this turn.
      await null;
    } while (this.#waiting.size > 0 && monotonic() < this.#until);
    this.#environment.nextTurn(() => this.#end());
  }
}
