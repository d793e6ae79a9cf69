import { LRUCache } from "lru-cache";
import { decodeRecord, encodeRecord, isUnreadable } from "../inbox/record/codec.ts";
import { type IdempotencyRecord, isFinished } from "../inbox/record/record.ts";
import type { Versioned } from "../inbox/store.ts";

/** A finished record as one text, with the time of its signature and its version on lines of their own before it. */
export function fold(version: string, record: IdempotencyRecord): string {
  return compact(`${record.signedAt}\n${version}\n${encodeRecord(record)}`);
}

/** The reverse of {@link fold}; null if the record has expired, or there is none. */
export function unfold(folded: string | undefined, now: number): Versioned | null {
  if (folded === undefined) return null;
  const start = folded.indexOf("\n") + 1;
  const end = folded.indexOf("\n", start);
  const record = decodeRecord(folded.slice(end + 1));
  if (!isUnreadable(record) && isFinished(record) && record.expiresAt <= now) return null;
  return { version: folded.slice(start, end), record };
}

function signedAtOf(folded: string): number {
  return Number.parseFloat(folded);
}

/** How many records are looked at, at each write, whose signed time may have come. */
const LOOKED_AT = 2;

/**
 * A bounded number of finished records. The least recently used one makes room for a new one, and an event that was signed no
 * later than it is then refused. So a record that was signed in the future makes no room before that time has come: all events
 * of the present would be refused until then.
 */
export class FinishedRecords {
  readonly #max: number;
  readonly #folded: LRUCache<string, string>;
  /** Records that were signed in the future when they were last looked at. The next to be looked at comes first. */
  readonly #ahead = new Map<string, string>();
  #forgottenBefore = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
    this.#folded = new LRUCache({
      max,
      dispose: (folded, _key, reason) => {
        if (reason === "evict") this.#forgottenBefore = Math.max(this.#forgottenBefore, signedAtOf(folded));
      },
    });
  }

  /** The latest signed time of any record that had to make room. It is never in the future. */
  get forgottenBefore(): number {
    return this.#forgottenBefore;
  }

  get size(): number {
    return this.#folded.size + this.#ahead.size;
  }

  /** False if as many records as are kept were signed in the future, so that no further one can be taken in. */
  get hasRoomAhead(): boolean {
    return this.#ahead.size < this.#max;
  }

  get(key: string, now: number): Versioned | null {
    return unfold(this.#folded.get(key) ?? this.#ahead.get(key), now);
  }

  /** Like {@link get}, but the record does not count as used. */
  peek(key: string, now: number): Versioned | null {
    return unfold(this.#peek(key), now);
  }

  /** Whether the packed text of a record fits a condition. */
  mayFit(key: string, fits: (folded: string) => boolean): boolean {
    const folded = this.#peek(key);
    return folded !== undefined && fits(folded);
  }

  set(key: string, version: string, record: IdempotencyRecord, now: number): void {
    this.delete(key);
    this.#put(compact(key), fold(version, record), now);
    let left = LOOKED_AT;
    for (const [known, folded] of this.#ahead) {
      if (left-- === 0) break;
      this.#ahead.delete(known);
      this.#put(known, folded, now);
    }
  }

  delete(key: string): void {
    this.#folded.delete(key);
    this.#ahead.delete(key);
  }

  keys(): Iterable<string> {
    return [...this.#folded.keys(), ...this.#ahead.keys()];
  }

  #peek(key: string): string | undefined {
    return this.#folded.peek(key) ?? this.#ahead.get(key);
  }

  #put(key: string, folded: string, now: number): void {
    if (signedAtOf(folded) > now) this.#ahead.set(key, folded);
    else this.#folded.set(key, folded);
  }
}

/**
 * Copies a text into as little memory as it needs. V8 keeps the whole text that a substring was cut from, and all parts of a
 * concatenated text. A text that was joined with a property's name can take two bytes for each letter.
 */
function compact(text: string): string {
  return Buffer.from(text).toString();
}
