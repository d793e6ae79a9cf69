import type { Clock } from "../time/clock.ts";

/** What came under one subject since its period began. */
interface Period<Item> {
  readonly began: number;
  passed: number;
  /** The latest that did not pass, and how many those were. */
  latest: Item | null;
  leftOut: number;
  cancelTimer: (() => void) | null;
}

/** How many subjects are known. There are few kinds of them; the oldest one is ended early. */
const MAX_SUBJECTS = 100;

/**
 * Lets the first few items of each subject pass within a period, and tells at its end how many more there were. While a store is
 * away, every call to it fails, and a report of each one would help nobody.
 */
export class Limiter<Item> {
  readonly #clock: Clock;
  readonly #periodMs: number;
  readonly #pass: (item: Item) => void;
  readonly #tellRest: (latest: Item, leftOut: number) => void;
  readonly #periods = new Map<string, Period<Item>>();

  constructor(
    clock: Clock,
    periodMs: number,
    pass: (item: Item) => void,
    tellRest: (latest: Item, leftOut: number) => void,
  ) {
    this.#clock = clock;
    this.#periodMs = periodMs;
    this.#pass = pass;
    this.#tellRest = tellRest;
  }

  /** Looks at the time too, since on Workers, timers end with the request that set them. `times`: the item stands for so many. */
  add(subject: string, item: Item, limit: number, times: number): void {
    const now = this.#clock.now();
    const open = this.#periods.get(subject);
    if (open !== undefined && (now < open.began || now >= open.began + this.#periodMs)) this.#end(subject);
    const period = this.#periods.get(subject) ?? this.#begin(subject);
    if (period.passed < limit) {
      period.passed++;
      this.#pass(item);
      return;
    }
    period.latest = item;
    period.leftOut += times;
    period.cancelTimer ??= this.#clock.after(period.began + this.#periodMs - now, () => {
      this.#end(subject);
      // Where one may pass, what was told just now is that one.
      if (limit === 1) this.#begin(subject).passed = 1;
    });
  }

  /** Tells of what was not told so far. */
  close(): void {
    for (const subject of [...this.#periods.keys()]) this.#end(subject);
  }

  #begin(subject: string): Period<Item> {
    for (const oldest of this.#periods.keys()) {
      if (this.#periods.size < MAX_SUBJECTS) break;
      this.#end(oldest);
    }
    const period = { began: this.#clock.now(), passed: 0, latest: null, leftOut: 0, cancelTimer: null };
    this.#periods.set(subject, period);
    return period;
  }

  #end(subject: string): void {
    const period = this.#periods.get(subject);
    if (period === undefined) return;
    this.#periods.delete(subject);
    period.cancelTimer?.();
    if (period.latest !== null) this.#tellRest(period.latest, period.leftOut);
  }
}
