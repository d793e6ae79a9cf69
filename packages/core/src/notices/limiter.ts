import type { Clock } from "../time/clock.ts";

/** The items of one subject since its period began. */
interface Period<Item> {
  readonly beganAt: number;
  passedCount: number;
  /** The latest item that did not pass, and how many did not. */
  latestSuppressed: Item | null;
  suppressed: number;
  cancelTimer: (() => void) | null;
}

export interface LimiterOptions<Item> {
  readonly clock: Clock;
  readonly periodMs: number;
  /** True if the report about the rest counts as the first item of the next period. */
  readonly summaryCounts?: boolean;
  readonly pass: (item: Item) => void;
  readonly passSummary: (latestSuppressed: Item, suppressed: number) => void;
}

/**
 * How many subjects are remembered at most. There are few kinds of subjects. If there are more, the period of the oldest ends
 * early.
 */
const MAX_SUBJECTS = 100;

/**
 * Lets the first few items of each subject pass within a period, and reports at its end how many more there were. While
 * a store is unreachable, every call to it fails, and a report of each failure would not help.
 */
export class Limiter<Item> {
  readonly #options: LimiterOptions<Item>;
  readonly #periods = new Map<string, Period<Item>>();

  constructor(options: LimiterOptions<Item>) {
    this.#options = options;
  }

  /**
   * Also checks the time, because on Workers, timers end with the request that set them. `times`: how many the item stands for.
   */
  add(subject: string, item: Item, limit: number, times: number): void {
    const { clock, periodMs, pass, summaryCounts = false } = this.#options;
    const now = clock.now();
    const open = this.#periods.get(subject);
    if (open !== undefined && (now < open.beganAt || now >= open.beganAt + periodMs)) this.#end(subject);
    const period = this.#periods.get(subject) ?? this.#begin(subject);
    if (period.passedCount < limit) {
      period.passedCount++;
      pass(item);
      return;
    }
    period.latestSuppressed = item;
    period.suppressed += times;
    period.cancelTimer ??= clock.after(period.beganAt + periodMs - now, () => {
      this.#end(subject);
      if (summaryCounts) this.#begin(subject).passedCount = 1;
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
      beganAt: this.#options.clock.now(),
      passedCount: 0,
      latestSuppressed: null,
      suppressed: 0,
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
    if (period.latestSuppressed !== null)
      this.#options.passSummary(period.latestSuppressed, period.suppressed);
  }
}
