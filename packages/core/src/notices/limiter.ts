import type { Clock } from "../time/clock.ts";

/** The items of one subject since its period began. */
interface Period<Item> {
  readonly began: number;
  passed: number;
  /** The latest item that did not pass, and how many did not. */
  latest: Item | null;
  leftOut: number;
  cancelTimer: (() => void) | null;
}

export interface LimiterOptions<Item> {
  readonly clock: Clock;
  readonly periodMs: number;
  /** True if the report about the rest counts as the first item of the next period. */
  readonly restCounts?: boolean;
  readonly pass: (item: Item) => void;
  readonly passRest: (latest: Item, leftOut: number) => void;
}

/**
 * How many subjects are remembered at most. There are few kinds of subjects. If there are more, the period of the oldest ends
 * early.
 */
const MAX_SUBJECTS = 100;

/**
 * Lets the first few items of each subject pass within a period, and reports at its end how many more there were. While a store is
 * unreachable, every call to it fails, and a report of each failure would not help.
 */
export class Limiter<Item> {
  readonly #options: LimiterOptions<Item>;
  readonly #periods = new Map<string, Period<Item>>();

  constructor(options: LimiterOptions<Item>) {
    this.#options = options;
  }

  /** Also checks the time, since on Workers, timers end with the request that set them. `times`: how many the item stands for. */
  add(subject: string, item: Item, limit: number, times: number): void {
    const { clock, periodMs, pass, restCounts = false } = this.#options;
    const now = clock.now();
    const open = this.#periods.get(subject);
    if (open !== undefined && (now < open.began || now >= open.began + periodMs)) this.#end(subject);
    const period = this.#periods.get(subject) ?? this.#begin(subject);
    if (period.passed < limit) {
      period.passed++;
      pass(item);
      return;
    }
    period.latest = item;
    period.leftOut += times;
    period.cancelTimer ??= clock.after(period.began + periodMs - now, () => {
      this.#end(subject);
      if (restCounts) this.#begin(subject).passed = 1;
    });
  }

  /** Reports the items that were not reported so far. */
  close(): void {
    for (const subject of [...this.#periods.keys()]) this.#end(subject);
  }

  #begin(subject: string): Period<Item> {
    for (const oldest of this.#periods.keys()) {
      if (this.#periods.size < MAX_SUBJECTS) break;
      this.#end(oldest);
    }
    const period = {
      began: this.#options.clock.now(),
      passed: 0,
      latest: null,
      leftOut: 0,
      cancelTimer: null,
    };
    this.#periods.set(subject, period);
    return period;
  }

  #end(subject: string): void {
    const period = this.#periods.get(subject);
    if (period === undefined) return;
    this.#periods.delete(subject);
    period.cancelTimer?.();
    if (period.latest !== null) this.#options.passRest(period.latest, period.leftOut);
  }
}
