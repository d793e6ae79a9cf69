import type { Clock } from "../clock.ts";

/** Clocks that are being set right run at most this much slower than they should. */
const SLOWEST = 1 - 1 / 2000;
/** A server tells whole milliseconds only. */
const ROUNDING_MS = 1;

/**
 * A server's clock, as its answers tell it: never ahead of it, since what is computed with a time that has not come yet is
 * refused. An answer says what time it was some moment before it arrived; from then on at least so much has passed.
 */
export class ServerClock {
  readonly #clock: Clock;
  #told: number | null = null;
  #arrivedAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds since the epoch; the process's own clock until the server has told its time. */
  now(): number {
    return Math.floor(this.#at(this.#clock.monotonic()));
  }

  #at(monotonic: number): number {
    if (this.#told === null) return this.#clock.now();
    return this.#told + (monotonic - this.#arrivedAt) * SLOWEST;
  }

  /** An answer arrived now, to a question of `askedAt` (monotonic), and told this time. */
  learn(told: number, askedAt: number): void {
    const arrivedAt = this.#clock.monotonic();
    const isAhead = this.#at(askedAt) >= told + ROUNDING_MS;
    if (this.#told !== null && !isAhead && told < this.#at(arrivedAt)) return;
    this.#told = told;
    this.#arrivedAt = arrivedAt;
  }
}
