import { LRUCache } from "lru-cache";
import { type HeapEntry, IndexedHeap } from "../collections/indexed-heap.ts";
import { mayHaveOneMore } from "../inbox/accept/tenant-share.ts";
import type { VersionedRecord } from "../inbox/contract/store.ts";
import { decodeRecord, encodeRecord, isUnreadable } from "../inbox/record/codec.ts";
import { type IdempotencyRecord, isFinished } from "../inbox/record/record.ts";

/** A finished record as one text, with the time of its signature and its version on lines of their own before it. */
export function fold(version: string, record: IdempotencyRecord): string {
  return compact(`${record.signedAt}\n${version}\n${encodeRecord(record)}`);
}

/** The reverse of {@link fold}; null if the record has expired, or there is none. */
export function unfold(folded: string | undefined, now: number): VersionedRecord | null {
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
const CHECKED_PER_WRITE = 2;

/** The records of one tenant. It stays when no record is left in it, because it knows what was forgotten. */
interface TenantShare extends HeapEntry {
  /** Its records that may make room. */
  readonly cache: LRUCache<string, string>;
  /** How many of its records were signed in the future. */
  aheadCount: number;
  forgottenBefore: number;
}

/**
 * A bounded number of finished records. To make room for a new record, the least recently used record of the largest tenant is
 * dropped. From then on, events of this tenant that were signed no later than the dropped record are refused. So a flood of one
 * tenant drops no record of a tenant that has fewer. A record that was signed in the future is not dropped before that time:
 * otherwise all current events would be refused until then.
 */
export class FinishedRecords {
  readonly #maxRecords: number;
  readonly #shares = new Map<string, TenantShare>();
  readonly #shareByKey = new Map<string, TenantShare>();
  readonly #sharesBySize = new IndexedHeap<TenantShare>((a, b) => a.cache.size > b.cache.size);
  /** Records that were signed in the future when they were last checked. The next to be checked comes first. */
  readonly #aheadRecords = new Map<string, string>();

  constructor(maxRecords: number) {
    this.#maxRecords = maxRecords;
  }

  /** The latest signed time of any record of this tenant that had to make room. It is never in the future. */
  forgottenBefore(tenant: string): number {
    return this.#shares.get(tenant)?.forgottenBefore ?? Number.NEGATIVE_INFINITY;
  }

  /** True if a further record of this tenant may be signed in the future. These records are never dropped to make room. */
  hasRoomAhead(tenant: string): boolean {
    return mayHaveOneMore(
      tenant,
      this.#shares.get(tenant)?.aheadCount ?? 0,
      this.#maxRecords - this.#aheadRecords.size,
    );
  }

  get(key: string, now: number): VersionedRecord | null {
    return unfold(this.#shareByKey.get(key)?.cache.get(key) ?? this.#aheadRecords.get(key), now);
  }

  /** Like {@link get}, but the record does not count as used. */
  peek(key: string, now: number): VersionedRecord | null {
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
    let remaining = CHECKED_PER_WRITE;
    for (const [aheadKey, folded] of this.#aheadRecords) {
      if (remaining-- === 0) break;
      const share = this.#shareByKey.get(aheadKey);
      if (share === undefined) continue;
      this.delete(aheadKey);
      this.#put(aheadKey, folded, share, now);
    }
  }

  delete(key: string): void {
    const share = this.#shareByKey.get(key);
    if (share === undefined) return;
    this.#shareByKey.delete(key);
    if (this.#aheadRecords.delete(key)) share.aheadCount--;
    else this.#resize(share, () => share.cache.delete(key));
  }

  keys(): Iterable<string> {
    return [...this.#shareByKey.keys()];
  }

  #peek(key: string): string | undefined {
    return this.#shareByKey.get(key)?.cache.peek(key) ?? this.#aheadRecords.get(key);
  }

  #shareFor(tenant: string): TenantShare {
    const knownShare = this.#shares.get(tenant);
    if (knownShare !== undefined) return knownShare;
    // With a size of 1 each, nothing is allocated before it is needed.
    const cache = new LRUCache<string, string>({ maxSize: this.#maxRecords, sizeCalculation: () => 1 });
    const share = { cache, aheadCount: 0, forgottenBefore: Number.NEGATIVE_INFINITY, position: 0 };
    this.#shares.set(compact(tenant), share);
    this.#sharesBySize.add(share);
    return share;
  }

  #put(key: string, folded: string, share: TenantShare, now: number): void {
    if (signedAtOf(folded) > now) {
      this.#aheadRecords.set(key, folded);
      share.aheadCount++;
    } else {
      if (this.#shareByKey.size - this.#aheadRecords.size >= this.#maxRecords) this.#makeRoom();
      this.#resize(share, () => share.cache.set(key, folded));
    }
    this.#shareByKey.set(key, share);
  }

  #makeRoom(): void {
    const share = this.#sharesBySize.peek();
    const oldest = share?.cache.rkeys().next().value;
    if (share === undefined || oldest === undefined) return;
    const signedAt = signedAtOf(share.cache.peek(oldest) ?? "");
    share.forgottenBefore = Math.max(share.forgottenBefore, signedAt);
    this.delete(oldest);
  }

  /** Changes how many records a tenant has. */
  #resize(share: TenantShare, change: () => void): void {
    this.#sharesBySize.remove(share);
    change();
    this.#sharesBySize.add(share);
  }
}

/**
 * Copies a text into as little memory as it needs. V8 keeps the whole text that a substring was cut from, and all parts of a
 * concatenated text. A text that was joined with a property's name can take two bytes for each letter.
 */
export function compact(text: string): string {
  return Buffer.from(text).toString();
}
