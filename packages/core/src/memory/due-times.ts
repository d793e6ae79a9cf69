import { IndexedHeap } from "../collections/indexed-heap.ts";
import { LANES, type Lanes } from "../inbox/record/lane.ts";
import type { OpenRecord } from "./open-record.ts";

/** If a time is further away than when it was set, by more than this, a wrong clock has set it. */
const CLOCK_TOLERANCE_MS = 5_000;

/** The times at which records are due, past and future. */
export class DueTimes {
  readonly #due: Lanes<IndexedHeap<OpenRecord>> = { usual: makeLaneHeap(), patient: makeLaneHeap() };
  readonly #later = new IndexedHeap<OpenRecord>((a, b) => a.availableAt < b.availableAt);
  /** The latest known time: of the last poll, or of anything added since. */
  #knownNow = Number.NEGATIVE_INFINITY;
  /** True if a record has a due time that is too far away to be right. */
  #isInDoubt = false;

  add(entry: OpenRecord, now: number): void {
    this.#knownNow = Math.max(this.#knownNow, now);
    if (entry.index.dueAt === null) return;
    if (!isDue(entry, now)) this.#moveTo(entry, this.#later);
    else {
      this.#moveTo(entry, this.#due[entry.index.lane]);
      if (entry.availableAt > now) this.#isInDoubt = true;
    }
  }

  remove(entry: OpenRecord): void {
    entry.heap?.remove(entry);
    entry.heap = null;
  }

  /** Takes records that are due, the longest waiting of each lane first, and hides them for a while. */
  take(limit: Lanes, hideMs: number, now: number): readonly OpenRecord[] {
    this.#moveDue(now);
    const takenRecords: OpenRecord[] = [];
    for (const lane of LANES) {
      for (let free = limit[lane]; free > 0; free--) {
        const entry = this.#due[lane].peek();
        if (entry === undefined) break;
        this.remove(entry);
        entry.availableAt = now + hideMs;
        entry.availableInMs = hideMs;
        this.#moveTo(entry, this.#later);
        takenRecords.push(entry);
      }
    }
    return takenRecords;
  }

  /** How many records are due and not hidden. */
  countDue(now: number): Lanes {
    this.#moveDue(now);
    return { usual: this.#due.usual.size, patient: this.#due.patient.size };
  }

  /** When the longest-waiting due record became due; null when none is due. */
  oldestDueAt(now: number): number | null {
    this.#moveDue(now);
    const times = LANES.flatMap((lane) => this.#due[lane].peek()?.availableAt ?? []);
    return times.length === 0 ? null : Math.min(...times, now);
  }

  /** When the next record falls due, or comes out of hiding; null when none waits. */
  get nextDueAt(): number | null {
    return this.#later.peek()?.availableAt ?? null;
  }

  #moveTo(entry: OpenRecord, heap: IndexedHeap<OpenRecord>): void {
    this.remove(entry);
    entry.heap = heap;
    heap.add(entry);
  }

  #moveDue(now: number): void {
    for (
      let entry = this.#later.peek();
      entry !== undefined && entry.availableAt <= now;
      entry = this.#later.peek()
    ) {
      this.#moveTo(entry, this.#due[entry.index.lane]);
    }
    // After the clock was set back, some times are too far away until it is right again.
    if (now < this.#knownNow || this.#isInDoubt) this.#resort(now);
    this.#knownNow = now;
  }

  #resort(now: number): void {
    this.#isInDoubt = false;
    const { usual, patient } = this.#due;
    for (const entry of [...usual.values(), ...patient.values(), ...this.#later.values()]) {
      const heap = isDue(entry, now) ? this.#due[entry.index.lane] : this.#later;
      if (heap !== entry.heap) this.#moveTo(entry, heap);
      if (heap !== this.#later && entry.availableAt > now) this.#isInDoubt = true;
    }
  }
}

function makeLaneHeap(): IndexedHeap<OpenRecord> {
  return new IndexedHeap(
    (a, b) => a.availableAt < b.availableAt || (a.availableAt === b.availableAt && a.order < b.order),
  );
}

function isDue({ availableAt, availableInMs }: OpenRecord, now: number): boolean {
  return availableAt <= now || availableAt > now + availableInMs + CLOCK_TOLERANCE_MS;
}
