import { LRUCache } from "lru-cache";
import { pack, signedAtOf, unpack } from "../record/pack.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import type { Versioned } from "../store.ts";

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

/** A bounded number of finished records: the one that was not asked for for longest makes room. */
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
 * The same text in as little memory as it needs. V8 keeps the whole of a text that another one was cut from, and the parts
 * of one that was put together; and a text that is joined with a property's name can take two bytes for each letter.
 */
function compact(text: string): string {
  return Buffer.from(text).toString();
}
