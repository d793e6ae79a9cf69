import type { Clock } from "../clock.ts";

/** Runs that have begun may wait for a place for about so long. */
const WAIT_MS = 50;
/** However quick handlers are, no more than this wait for a place. */
const MAX_WAITING = 256;
/** Weight of the newest run in the average. */
const NEWEST = 1 / 16;
/** Before any run has told how long one takes. What waits too long for that is handed back. */
const FIRST_GUESS_MS = 1;

/**
 * The events that may run at one time in this process, and how many more may be begun so that none has to wait long: a
 * handler of a millisecond leaves room for many, one of a second for none.
 */
export class Places {
  readonly #clock: Clock;
  /** Null while this process runs nothing. */
  #concurrency: number | null = null;
  #running = 0;
  #begun = 0;
  #averageMs = FIRST_GUESS_MS;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** With null, nothing more is begun. */
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

  /** True while something that was begun may run. */
  get isFree(): boolean {
    return this.#running < (this.#concurrency ?? Number.POSITIVE_INFINITY);
  }

  /** An event is being begun. */
  reserve(): void {
    this.#begun++;
  }

  /** It was not begun after all, or its run has ended. */
  giveBack(): void {
    this.#begun--;
  }

  /** What has not ended yet tells that runs take at least so long. */
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
