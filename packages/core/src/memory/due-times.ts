import { EarliestFirst } from "./earliest-first.ts";
import type { OpenRecord } from "./open-record.ts";

/** If a time is further away than when it was set, by more than this, a wrong clock has set it. */
const WRONG_BY_MS = 5_000;

/** The times at which records have to be looked at, past and future. */
export class DueTimes {
  readonly #due = new EarliestFirst<OpenRecord>(
    (a, b) => a.lookAt < b.lookAt || (a.lookAt === b.lookAt && a.order < b.order),
  );
  readonly #later = new EarliestFirst<OpenRecord>((a, b) => a.lookAt < b.lookAt);
  /** The latest known time: of the last look, or of anything added since. */
  #knownNow = Number.NEGATIVE_INFINITY;
  /** True if a record has a due time that is too far away to be right. */
  #isInDoubt = false;

  add(entry: OpenRecord, now: number): void {
    this.#knownNow = Math.max(this.#knownNow, now);
    if (entry.index.dueAt === null) return;
    if (!isDue(entry, now)) this.#wait(entry, this.#later);
    else {
      this.#wait(entry, this.#due);
      if (entry.lookAt > now) this.#isInDoubt = true;
    }
  }

  remove(entry: OpenRecord): void {
    entry.line?.remove(entry);
    entry.line = null;
  }

  /** Takes records that are due, the longest waiting first, and hides them for a while. */
  take(limit: number, hideMs: number, now: number): readonly OpenRecord[] {
    this.#moveDue(now);
    const taken: OpenRecord[] = [];
    while (taken.length < limit) {
      const entry = this.#due.peek();
      if (entry === undefined) break;
      this.remove(entry);
      entry.lookAt = now + hideMs;
      entry.lookInMs = hideMs;
      this.#wait(entry, this.#later);
      taken.push(entry);
    }
    return taken;
  }

  /** How many records are due and not hidden. */
  count(now: number): number {
    this.#moveDue(now);
    return this.#due.size;
  }

  /** Since when the record that waits longest has been due; null when none is due. */
  oldest(now: number): number | null {
    this.#moveDue(now);
    const entry = this.#due.peek();
    return entry === undefined ? null : Math.min(entry.lookAt, now);
  }

  /** When the next record falls due, or comes out of hiding; null when none waits. */
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
    // After the clock was set back, some times are too far away until it is right again.
    if (now < this.#knownNow || this.#isInDoubt) this.#sortOut(now);
    this.#knownNow = now;
  }

  #sortOut(now: number): void {
    this.#isInDoubt = false;
    for (const entry of [...this.#due.values(), ...this.#later.values()]) {
      const line = isDue(entry, now) ? this.#due : this.#later;
      if (line !== entry.line) this.#wait(entry, line);
      if (line === this.#due && entry.lookAt > now) this.#isInDoubt = true;
    }
  }
}

function isDue({ lookAt, lookInMs }: OpenRecord, now: number): boolean {
  return lookAt <= now || lookAt > now + lookInMs + WRONG_BY_MS;
}
