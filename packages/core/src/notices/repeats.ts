import type { Clock } from "../time/clock.ts";

/** An error that may be repeated. Two are equal if both texts are. */
export interface RepeatedError {
  readonly during: string;
  readonly error: string;
  /** How many errors it stands for. */
  readonly count: number;
}

/** Equal errors within this time are reported as one, with their count. */
const PERIOD_MS = 10_000;
/** How many different errors are remembered. There are few kinds of them. */
const MAX_KINDS = 100;

/** One kind of error since it was last reported. */
interface Period<E> {
  readonly began: number;
  /** The latest error that was not reported, and how many there are. */
  latest: E | null;
  count: number;
  cancelTimer: (() => void) | null;
}

/**
 * Reports the first of several equal errors at once, and then every ten seconds how many followed. While a store is away,
 * every call to it fails, and a report of each one would help nobody.
 */
export class Repeats<E extends RepeatedError> {
  readonly #clock: Clock;
  readonly #tell: (error: E) => void;
  readonly #periods = new Map<string, Period<E>>();

  constructor(clock: Clock, tell: (error: E) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** Looks at the time too, since on Workers, timers end with the request that set them. */
  add(error: E): void {
    const kind = `${error.during}\n${error.error}`;
    const now = this.#clock.now();
    const period = this.#periods.get(kind);
    if (period === undefined || now < period.began || now >= period.began + PERIOD_MS) {
      this.#end(kind);
      this.#begin(kind);
      this.#tell(error);
      return;
    }
    period.latest = error;
    period.count += error.count;
    period.cancelTimer ??= this.#clock.after(period.began + PERIOD_MS - now, () => {
      this.#end(kind);
      this.#begin(kind);
    });
  }

  /** Reports the errors that were not reported so far. */
  close(): void {
    for (const kind of [...this.#periods.keys()]) this.#end(kind);
  }

  #begin(kind: string): void {
    for (const oldest of this.#periods.keys()) {
      if (this.#periods.size < MAX_KINDS) break;
      this.#end(oldest);
    }
    this.#periods.set(kind, { began: this.#clock.now(), latest: null, count: 0, cancelTimer: null });
  }

  #end(kind: string): void {
    const period = this.#periods.get(kind);
    if (period === undefined) return;
    this.#periods.delete(kind);
    period.cancelTimer?.();
    if (period.latest !== null) this.#tell({ ...period.latest, count: period.count });
  }
}
