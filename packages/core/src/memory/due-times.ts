import { EarliestFirst } from "../collections/earliest-first.ts";
import { LANES, type Lanes } from "../inbox/record/lane.ts";
import type { OpenRecord } from "./open-record.ts";

/** If a time is further away than when it was set, by more than this, a wrong clock has set it. */
const WRONG_BY_MS = 5_000;

/** The times at which records are due, past and future. */
export class DueTimes {
  readonly #due: Lanes<EarliestFirst<OpenRecord>> = { usual: newLane(), patient: newLane() };
  readonly #later = new EarliestFirst<OpenRecord>((a, b) => a.lookAt < b.lookAt);
  /** The latest known time: of the last poll, or of anything added since. */
  #knownNow = Number.NEGATIVE_INFINITY;
  /** True if a record has a due time that is too far away to be right. */
  #isInDoubt = false;

  add(entry: OpenRecord, now: number): void {
    this.#knownNow = Math.max(this.#knownNow, now);
    if (entry.index.dueAt === null) return;
    if (!isDue(entry, now)) this.#wait(entry, this.#later);
    else {
      this.#wait(entry, this.#due[entry.index.lane]);
      if (entry.lookAt > now) this.#isInDoubt = true;
    }
  }

  remove(entry: OpenRecord): void {
    entry.line?.remove(entry);
    entry.line = null;
  }

  /** Takes records that are due, the longest waiting of each lane first, and hides them for a while. */
  take(limit: Lanes, hideMs: number, now: number): readonly OpenRecord[] {
    this.#moveDue(now);
    const taken: OpenRecord[] = [];
    for (const lane of LANES) {
      for (let free = limit[lane]; free > 0; free--) {
        const entry = this.#due[lane].peek();
        if (entry === undefined) break;
        this.remove(entry);
        entry.lookAt = now + hideMs;
        entry.lookInMs = hideMs;
        this.#wait(entry, this.#later);
        taken.push(entry);
      }
    }
    return taken;
  }

  /** How many records are due and not hidden. */
  count(now: number): Lanes {
    this.#moveDue(now);
    return { usual: this.#due.usual.size, patient: this.#due.patient.size };
  }

  /** Since when the record that waits longest has been due; null when none is due. */
  oldest(now: number): number | null {
    this.#moveDue(now);
    const times = LANES.flatMap((lane) => this.#due[lane].peek()?.lookAt ?? []);
    return times.length === 0 ? null : Math.min(...times, now);
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
      this.#wait(entry, this.#due[entry.index.lane]);
    }
    // After the clock was set back, some times are too far away until it is right again.
    if (now < this.#knownNow || this.#isInDoubt) this.#sortOut(now);
    this.#knownNow = now;
  }

  #sortOut(now: number): void {
    this.#isInDoubt = false;
    const { usual, patient } = this.#due;
    for (const entry of [...usual.values(), ...patient.values(), ...this.#later.values()]) {
      const line = isDue(entry, now) ? this.#due[entry.index.lane] : this.#later;
      if (line !== entry.line) this.#wait(entry, line);
      if (line !== this.#later && entry.lookAt > now) this.#isInDoubt = true;
    }
  }
}

function newLane(): EarliestFirst<OpenRecord> {
  return new EarliestFirst((a, b) => a.lookAt < b.lookAt || (a.lookAt === b.lookAt && a.order < b.order));
}

function isDue({ lookAt, lookInMs }: OpenRecord, now: number): boolean {
  return lookAt <= now || lookAt > now + lookInMs + WRONG_BY_MS;
}
