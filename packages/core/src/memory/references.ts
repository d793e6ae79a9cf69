import type { IdempotencyRecord } from "../inbox/record/record.ts";
import type { Versioned } from "../inbox/store.ts";
import { fold, unfold } from "./finished-records.ts";

/** How often to search for expired references at most, since a search looks at all of them. */
const LOOK_EVERY_MS = 60_000;

/**
 * Records without events, which say which payment has a reference. If one were dropped early, a second SUCCESS could run. So
 * none of them is dropped to make room for another.
 */
export class References {
  readonly #max: number;
  readonly #folded = new Map<string, string>();
  #nextLookAt = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: string, now: number): Versioned | null {
    return unfold(this.#folded.get(key), now);
  }

  set(key: string, version: string, record: IdempotencyRecord): void {
    this.#folded.set(key, fold(version, record));
  }

  delete(key: string): void {
    this.#folded.delete(key);
  }

  hasRoomFor(key: string, now: number): boolean {
    if (this.#folded.size < this.#max || this.#folded.has(key)) return true;
    if (now >= this.#nextLookAt) {
      for (const [known, folded] of this.#folded)
        if (unfold(folded, now) === null) this.#folded.delete(known);
      this.#nextLookAt = now + LOOK_EVERY_MS;
    }
    return this.#folded.size < this.#max;
  }
}
