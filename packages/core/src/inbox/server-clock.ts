import type { Clock } from "../time/clock.ts";

/** A clock that is being corrected gradually runs at most this much too slow. */
const SLOWEST = 1 - 1 / 2000;
/** Servers tell their time in whole milliseconds. */
const ROUNDING_MS = 1;

/**
 * An estimate of a server's clock, made from the times in its answers. It is never ahead of the server's clock, since a
 * server refuses writes from the future. An answer has the server's time of some moment before it arrived. Since then at
 * least the time has passed that this process has measured.
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

  /** Takes in a time that the server has told, in an answer to a question asked at `askedAt` (monotonic). */
  learn(told: number, askedAt: number): void {
    const arrivedAt = this.#clock.monotonic();
    const isAhead = this.#at(askedAt) >= told + ROUNDING_MS;
    if (this.#told !== null && !isAhead && told < this.#at(arrivedAt)) return;
    this.#told = told;
    this.#arrivedAt = arrivedAt;
  }
}
