import type { Clock } from "../time/clock.ts";

/** A clock that is corrected gradually runs too slowly by this factor at most. */
const MIN_CLOCK_RATE = 1 - 1 / 2000;
/** Servers tell their time in whole milliseconds. */
const ROUNDING_MS = 1;

/**
 * An estimate of a server's clock, made from the times in its answers. It is never ahead of the server's clock, because
 * a server refuses writes from the future. An answer has the server's time at some moment before the answer arrived.
 * Since that moment, at least as much time has passed as this process has measured since the arrival.
 */
export class ServerClock {
  readonly #clock: Clock;
  #serverTime: number | null = null;
  #arrivedAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds since the epoch; the process's own clock until an answer has told the server's time. */
  now(): number {
    return Math.floor(this.#timeAt(this.#clock.monotonic()));
  }

  #timeAt(monotonic: number): number {
    if (this.#serverTime === null) return this.#clock.now();
    return this.#serverTime + (monotonic - this.#arrivedAt) * MIN_CLOCK_RATE;
  }

  /** Takes in the server's time from an answer to a question that was sent at `askedAt` (monotonic). */
  recordServerTime(serverTime: number, askedAt: number): void {
    const arrivedAt = this.#clock.monotonic();
    const isAhead = this.#timeAt(askedAt) >= serverTime + ROUNDING_MS;
    if (this.#serverTime !== null && !isAhead && serverTime < this.#timeAt(arrivedAt)) return;
    this.#serverTime = serverTime;
    this.#arrivedAt = arrivedAt;
  }
}
