import type { IdempotencyRecord } from "../record/record.ts";
import type { Versioned } from "../store.ts";
import { fold, unfold } from "./finished-records.ts";

/** Looking for references that are free again means looking at all of them. */
const LOOK_EVERY_MS = 60_000;

/**
 * Records without events: whom a reference belongs to. One that went before its time would let a second SUCCESS run, so
 * none of them makes room for another.
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
