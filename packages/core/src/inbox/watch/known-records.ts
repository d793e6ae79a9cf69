import type { KnownRecord, ListedEvent, Swap } from "../contract/store.ts";
import { isUnreadable } from "../record/codec.ts";
import { recordKeyOf } from "../record/event.ts";
import { indexOf } from "../record/index-of.ts";
import type { IdempotencyRecord } from "../record/record.ts";

interface WatchedRecord extends KnownRecord {
  /** The store must keep the record until this time, even if its events end (the store's clock). */
  readonly keptUntil: number;
}

/** How many records are remembered of each kind. */
export const MAX_KNOWN_RECORDS: number = 16;
/** The clocks of the store and of this process are assumed to differ by less than this. */
const EXPIRY_MARGIN_MS = 60_000;

/**
 * A few records that must still be stored. If a store was emptied, or restored to an earlier state, it lacks the newest
 * records of this process and of others. After a clean-up by hand, it lacks the events that have waited longest.
 */
export class KnownRecords {
  readonly #writtenRecords = new Map<string, WatchedRecord>();
  #listedRecords: readonly WatchedRecord[] = [];

  /** This write was confirmed. */
  onWritten({ key, version, record, index, at }: Swap): void {
    this.#writtenRecords.delete(key);
    if (record.expiresAt <= at + EXPIRY_MARGIN_MS) return;
    this.#writtenRecords.set(key, { key, version, index, keptUntil: record.expiresAt });
    if (this.#writtenRecords.size <= MAX_KNOWN_RECORDS) return;
    for (const oldest of this.#writtenRecords.keys()) {
      this.#writtenRecords.delete(oldest);
      return;
    }
  }

  /** These events were found in the store. */
  onListed(events: readonly ListedEvent[]): void {
    const recordByKey = new Map<string, WatchedRecord>();
    for (const { eventId, versioned } of events) {
      if (isUnreadable(versioned.record)) continue;
      const record: IdempotencyRecord = versioned.record;
      const key = recordKeyOf(eventId);
      recordByKey.set(key, {
        key,
        version: versioned.version,
        index: indexOf(key, record),
        keptUntil: record.expiresAt,
      });
    }
    this.#listedRecords = [...recordByKey.values()];
  }

  /** The records that must be stored at this time. */
  recordsAt(now: number): readonly KnownRecord[] {
    const all = new Map([
      ...this.#listedRecords.map((record) => [record.key, record] as const),
      ...this.#writtenRecords,
    ]);
    return [...all.values()].filter(({ keptUntil }) => keptUntil > now + EXPIRY_MARGIN_MS);
  }

  forget(): void {
    this.#writtenRecords.clear();
    this.#listedRecords = [];
  }
}
