import type { Clock } from "../time/clock.ts";

/** What is repeated: equal where both texts are. */
export interface RepeatedError {
  readonly during: string;
  readonly error: string;
  /** How many it stands for. */
  readonly count: number;
}

/** Equal errors within this time are told as one, with their count. */
const PERIOD_MS = 10_000;
/** Different errors that are known at one time; there are few kinds of them. */
const MAX_KINDS = 100;

/** One kind of error since it was last told. */
interface Period<E> {
  readonly began: number;
  /** The latest of those that were not told, and how many they are. */
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

  /** Looks at the time too: where a request ends, as on Workers, so do its timers. */
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

  /** Reports what was not reported so far. */
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
