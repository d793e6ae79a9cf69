import type { Clock } from "../time/clock.ts";

/** About how long a begun run may wait for a place. */
const WAIT_MS = 50;
/** The most runs that may wait for a place, however quick the handlers are. */
const MAX_WAITING = 256;
/** Weight of the newest run in the average. */
const NEWEST = 1 / 16;
/** The average that is assumed before any run has ended. If it is too low, runs that wait too long are handed back. */
const FIRST_GUESS_MS = 1;

/**
 * Counts how many events may run at one time in this process, and how many more may be begun without a long wait for a place.
 * If handlers take a millisecond, these are many. If they take a second, there are none.
 */
export class Places {
  readonly #clock: Clock;
  /** Null while this process runs no events. */
  #concurrency: number | null = null;
  #running = 0;
  #begun = 0;
  #averageMs = FIRST_GUESS_MS;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sets how many events may run; with null, nothing more is begun. */
  open(concurrency: number | null): void {
    this.#concurrency = concurrency;
  }

  /** How many events may be begun now. */
  get room(): number {
    if (this.#concurrency === null) return 0;
    const waiting = Math.min(MAX_WAITING, Math.floor((this.#concurrency * WAIT_MS) / this.#averageMs) - 1);
    return Math.max(0, this.#concurrency + Math.max(0, waiting) - this.#begun);
  }

  get isHalfEmpty(): boolean {
    return this.room * 2 >= (this.#concurrency ?? 0);
  }

  /** True while there is a place for a begun run. */
  get isFree(): boolean {
    return this.#running < (this.#concurrency ?? Number.POSITIVE_INFINITY);
  }

  /** An event is being begun. */
  reserve(): void {
    this.#begun++;
  }

  /** The event was not begun after all, or its run has ended. */
  giveBack(): void {
    this.#begun--;
  }

  /** A run that has not ended yet shows that runs take at least this long. */
  runsTakeAtLeast(ms: number): void {
    this.#averageMs = Math.max(this.#averageMs, ms);
  }

  /** A run starts; the returned function is called at its end. */
  enter(): () => void {
    this.#running++;
    const since = this.#clock.monotonic();
    return () => {
      this.#running--;
      const tookMs = Math.max(0.05, this.#clock.monotonic() - since);
      this.#averageMs += (tookMs - this.#averageMs) * NEWEST;
    };
  }
}
