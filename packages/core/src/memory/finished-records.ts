import { LRUCache } from "lru-cache";
import { pack, signedAtOf, unpack } from "../inbox/record/pack.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import type { Versioned } from "../inbox/store.ts";

/** A record in which nothing is to be done any more, as one text: packed, and its version on the last line. */
export function fold(version: string, record: IdempotencyRecord): string {
  return compact(`${pack(record)}\n${version}`);
}

/** The reverse of {@link fold}; null where the record has expired, or there is none. */
export function unfold(folded: string | undefined, now: number): Versioned | null {
  if (folded === undefined) return null;
  const end = folded.lastIndexOf("\n");
  const record = unpack(folded.slice(0, end));
  return record.expiresAt > now ? { version: folded.slice(end + 1), record } : null;
}

/** A bounded number of finished records. The one that was unused for the longest time makes room for a new one. */
export class FinishedRecords {
  readonly #folded: LRUCache<string, string>;
  #forgottenBefore = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#folded = new LRUCache({
      max,
      dispose: (folded, _key, reason) => {
        if (reason === "evict") this.#forgottenBefore = Math.max(this.#forgottenBefore, signedAtOf(folded));
      },
    });
  }

  /** The latest signed time of a record that had to make room. */
  get forgottenBefore(): number {
    return this.#forgottenBefore;
  }

  get size(): number {
    return this.#folded.size;
  }

  get(key: string, now: number): Versioned | null {
    return unfold(this.#folded.get(key), now);
  }

  /** As {@link get}, but it does not count as asked for. */
  peek(key: string, now: number): Versioned | null {
    return unfold(this.#folded.peek(key), now);
  }

  /** Whether a finished record's text fits, without unpacking it. */
  mayFit(key: string, fits: (folded: string) => boolean): boolean {
    const folded = this.#folded.peek(key);
    return folded !== undefined && fits(folded);
  }

  set(key: string, version: string, record: IdempotencyRecord): void {
    this.#folded.set(compact(key), fold(version, record));
  }

  delete(key: string): void {
    this.#folded.delete(key);
  }

  keys(): Iterable<string> {
    return this.#folded.keys();
  }
}

/**
 * Copies a text into as little memory as it needs. V8 keeps the whole text that a part was cut from, and all parts of a text
 * that was put together. A text that is joined with a property's name can take two bytes for each letter.
 */
function compact(text: string): string {
  return Buffer.from(text).toString();
}
