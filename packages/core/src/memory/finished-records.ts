import { LRUCache } from "lru-cache";
import { EarliestFirst, type HeapEntry } from "../collections/earliest-first.ts";
import { mayHaveOneMore } from "../inbox/accept/shares.ts";
import type { Versioned } from "../inbox/contract/store.ts";
import { decodeRecord, encodeRecord, isUnreadable } from "../inbox/record/codec.ts";
import { type IdempotencyRecord, isFinished } from "../inbox/record/record.ts";

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

/** How many records are checked at each write, because their signed time may have come. */
const LOOKED_AT = 2;

/** The records of one tenant. It stays when no record is left in it, because it knows what was forgotten. */
interface Share extends HeapEntry {
  /** Its records that may make room. */
  readonly folded: LRUCache<string, string>;
  /** How many of its records were signed in the future. */
  ahead: number;
  forgottenBefore: number;
}

/**
 * A bounded number of finished records. To make room for a new record, the least recently used record of the largest tenant is
 * dropped. From then on, events of this tenant that were signed no later than the dropped record are refused. So a flood of one
 * tenant drops no record of a tenant that has fewer. A record that was signed in the future is not dropped before that time:
 * otherwise all current events would be refused until then.
 */
export class FinishedRecords {
  readonly #max: number;
  readonly #shares = new Map<string, Share>();
  readonly #shareOf = new Map<string, Share>();
  readonly #largest = new EarliestFirst<Share>((a, b) => a.folded.size > b.folded.size);
  /** Records that were signed in the future when they were last checked. The next to be checked comes first. */
  readonly #ahead = new Map<string, string>();

  constructor(max: number) {
    this.#max = max;
  }

  /** The latest signed time of any record of this tenant that had to make room. It is never in the future. */
  forgottenBefore(tenant: string): number {
    return this.#shares.get(tenant)?.forgottenBefore ?? Number.NEGATIVE_INFINITY;
  }

  /** True if a further record of this tenant may be signed in the future. These records are never dropped to make room. */
  hasRoomAhead(tenant: string): boolean {
    return mayHaveOneMore(tenant, this.#shares.get(tenant)?.ahead ?? 0, this.#max - this.#ahead.size);
  }

  get(key: string, now: number): Versioned | null {
    return unfold(this.#shareOf.get(key)?.folded.get(key) ?? this.#ahead.get(key), now);
  }

  /** Like {@link get}, but the record does not count as used. */
  peek(key: string, now: number): Versioned | null {
    return unfold(this.#peek(key), now);
  }

  /** True if the packed text of a record fits a condition. */
  mayFit(key: string, fits: (folded: string) => boolean): boolean {
    const folded = this.#peek(key);
    return folded !== undefined && fits(folded);
  }

  set(key: string, version: string, record: IdempotencyRecord, now: number): void {
    this.delete(key);
    this.#put(compact(key), fold(version, record), this.#shareFor(record.tenant), now);
    let left = LOOKED_AT;
    for (const [known, folded] of this.#ahead) {
      if (left-- === 0) break;
      const share = this.#shareOf.get(known);
      if (share === undefined) continue;
      this.delete(known);
      this.#put(known, folded, share, now);
    }
  }

  delete(key: string): void {
    const share = this.#shareOf.get(key);
    if (share === undefined) return;
    this.#shareOf.delete(key);
    if (this.#ahead.delete(key)) share.ahead--;
    else this.#change(share, () => share.folded.delete(key));
  }

  keys(): Iterable<string> {
    return [...this.#shareOf.keys()];
  }

  #peek(key: string): string | undefined {
    return this.#shareOf.get(key)?.folded.peek(key) ?? this.#ahead.get(key);
  }

  #shareFor(tenant: string): Share {
    const known = this.#shares.get(tenant);
    if (known !== undefined) return known;
    // With a size of 1 each, nothing is allocated before it is needed.
    const folded = new LRUCache<string, string>({ maxSize: this.#max, sizeCalculation: () => 1 });
    const share = { folded, ahead: 0, forgottenBefore: Number.NEGATIVE_INFINITY, position: 0 };
    this.#shares.set(compact(tenant), share);
    this.#largest.add(share);
    return share;
  }

  #put(key: string, folded: string, share: Share, now: number): void {
    if (signedAtOf(folded) > now) {
      this.#ahead.set(key, folded);
      share.ahead++;
    } else {
      if (this.#shareOf.size - this.#ahead.size >= this.#max) this.#makeRoom();
      this.#change(share, () => share.folded.set(key, folded));
    }
    this.#shareOf.set(key, share);
  }

  #makeRoom(): void {
    const share = this.#largest.peek();
    const oldest = share?.folded.rkeys().next().value;
    if (share === undefined || oldest === undefined) return;
    const signedAt = signedAtOf(share.folded.peek(oldest) ?? "");
    share.forgottenBefore = Math.max(share.forgottenBefore, signedAt);
    this.delete(oldest);
  }

  /** Changes how many records a tenant has. */
  #change(share: Share, change: () => void): void {
    this.#largest.remove(share);
    change();
    this.#largest.add(share);
  }
}

/**
 * Copies a text into as little memory as it needs. V8 keeps the whole text that a substring was cut from, and all parts of a
 * concatenated text. A text that was joined with a property's name can take two bytes for each letter.
 */
export function compact(text: string): string {
  return Buffer.from(text).toString();
}
