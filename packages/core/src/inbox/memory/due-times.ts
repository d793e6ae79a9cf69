import { EarliestFirst } from "./earliest-first.ts";
import type { OpenRecord } from "./open-record.ts";

/** A time that is further away than it was when it was set, by more than this, was set by a clock that was wrong. */
const WRONG_BY_MS = 5_000;

/** When records have to be looked at: those that are due already, and those that will be. */
export class DueTimes {
  readonly #due = new EarliestFirst<OpenRecord>(
    (a, b) => dueAtOf(a) < dueAtOf(b) || (dueAtOf(a) === dueAtOf(b) && a.order < b.order),
  );
  readonly #later = new EarliestFirst<OpenRecord>((a, b) => a.lookAt < b.lookAt);
  #lastLookAt = Number.NEGATIVE_INFINITY;

  add(entry: OpenRecord, now: number): void {
    if (entry.index.dueAt === null) return;
    this.#wait(entry, isDue(entry, now) ? this.#due : this.#later);
  }

  remove(entry: OpenRecord): void {
    entry.line?.remove(entry);
    entry.line = null;
  }

  /** Takes what is due, the longest waiting first, and hides it for a while. */
  take(limit: number, hideMs: number, now: number): readonly OpenRecord[] {
    this.#moveDue(now);
    const taken: OpenRecord[] = [];
    while (taken.length < limit) {
      const entry = this.#due.peek();
      if (entry === undefined) break;
      entry.lookAt = now + hideMs;
      entry.lookInMs = hideMs;
      this.#wait(entry, this.#later);
      taken.push(entry);
    }
    return taken;
  }

  /** How many are due and not hidden. */
  count(now: number): number {
    this.#moveDue(now);
    return this.#due.size;
  }

  /** Since when the one is due that waits longest; null when none is. */
  oldest(now: number): number | null {
    this.#moveDue(now);
    const entry = this.#due.peek();
    return entry === undefined ? null : Math.min(dueAtOf(entry), now);
  }

  /** When the next one is due, or comes out of hiding; null when none waits. */
  get next(): number | null {
    return this.#later.peek()?.lookAt ?? null;
  }

  #wait(entry: OpenRecord, line: EarliestFirst<OpenRecord>): void {
    this.remove(entry);
    entry.line = line;
    line.add(entry);
  }

  #moveDue(now: number): void {
    for (
      let entry = this.#later.peek();
      entry !== undefined && entry.lookAt <= now;
      entry = this.#later.peek()
    ) {
      this.#wait(entry, this.#due);
    }
    // A clock that was set back leaves times behind that are too far away.
    if (now < this.#lastLookAt) {
      for (const entry of [...this.#later.values()]) if (isDue(entry, now)) this.#wait(entry, this.#due);
    }
    this.#lastLookAt = now;
  }
}

function dueAtOf({ index }: OpenRecord): number {
  return index.dueAt ?? Number.POSITIVE_INFINITY;
}

function isDue({ lookAt, lookInMs }: OpenRecord, now: number): boolean {
  return lookAt <= now || lookAt > now + lookInMs + WRONG_BY_MS;
}
