import { LRUCache } from "lru-cache";
import { pack, signedAtOf, unpack } from "../inbox/record/pack.ts";
import { type IdempotencyRecord, isFinished } from "../inbox/record/record.ts";
import type { Versioned } from "../inbox/store.ts";

/** A finished record as one text: the packed record, and its version on the last line. */
export function fold(version: string, record: IdempotencyRecord): string {
  return compact(`${pack(record)}\n${version}`);
}

/** The reverse of {@link fold}; null if the record has expired, or there is none. */
export function unfold(folded: string | undefined, now: number): Versioned | null {
  if (folded === undefined) return null;
  const end = folded.lastIndexOf("\n");
  const record = unpack(folded.slice(0, end));
  if (isFinished(record) && record.expiresAt <= now) return null;
  return { version: folded.slice(end + 1), record };
}

/** A bounded number of finished records. The least recently used one makes room for a new one. */
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

  /** The latest signed time of any record that had to make room. */
  get forgottenBefore(): number {
    return this.#forgottenBefore;
  }

  get size(): number {
    return this.#folded.size;
  }

  get(key: string, now: number): Versioned | null {
    return unfold(this.#folded.get(key), now);
  }

  /** Like {@link get}, but the record does not count as used. */
  peek(key: string, now: number): Versioned | null {
    return unfold(this.#folded.peek(key), now);
  }

  /** Whether the packed text of a record fits a condition. */
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
 * Copies a text into as little memory as it needs. V8 keeps the whole text that a substring was cut from, and all parts of a
 * concatenated text. A text that was joined with a property's name can take two bytes for each letter.
 */
function compact(text: string): string {
  return Buffer.from(text).toString();
}
