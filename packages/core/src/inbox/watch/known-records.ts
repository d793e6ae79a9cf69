import type { KnownRecord, ListedEvent, Swap } from "../contract/store.ts";
import { isUnreadable } from "../record/codec.ts";
import { recordKeyOf } from "../record/event.ts";
import { indexOf } from "../record/index-of.ts";
import type { IdempotencyRecord } from "../record/record.ts";

interface Remembered extends KnownRecord {
  /** The store must keep the record until this time, even if its events end (the store's clock). */
  readonly keptUntil: number;
}

/** How many records are remembered of each kind. */
export const REMEMBERED: number = 16;
/** The clocks of the store and of this process are assumed to differ by less than this. */
const MARGIN_MS = 60_000;

/**
 * A few records that must still be stored. If a store was emptied, or restored to an earlier state, it lacks the newest
 * records of this process and of others. After a clean-up by hand, it lacks the events that have waited longest.
 */
export class KnownRecords {
  readonly #written = new Map<string, Remembered>();
  #listed: readonly Remembered[] = [];

  /** This write was confirmed. */
  written({ key, version, record, index, at }: Swap): void {
    this.#written.delete(key);
    if (record.expiresAt <= at + MARGIN_MS) return;
    this.#written.set(key, { key, version, index, keptUntil: record.expiresAt });
    if (this.#written.size <= REMEMBERED) return;
    for (const oldest of this.#written.keys()) {
      this.#written.delete(oldest);
      return;
    }
  }

  /** These events were found in the store. */
  listed(events: readonly ListedEvent[]): void {
    const found = new Map<string, Remembered>();
    for (const { eventId, versioned } of events) {
      if (isUnreadable(versioned.record)) continue;
      const record: IdempotencyRecord = versioned.record;
      const key = recordKeyOf(eventId);
      found.set(key, {
        key,
        version: versioned.version,
        index: indexOf(key, record),
        keptUntil: record.expiresAt,
      });
    }
    this.#listed = [...found.values()];
  }

  /** The records that must be stored at this time. */
  at(now: number): readonly KnownRecord[] {
    const all = new Map([...this.#listed.map((one) => [one.key, one] as const), ...this.#written]);
    return [...all.values()].filter(({ keptUntil }) => keptUntil > now + MARGIN_MS);
  }

  forget(): void {
    this.#written.clear();
    this.#listed = [];
  }
}
