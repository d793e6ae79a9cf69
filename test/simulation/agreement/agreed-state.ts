/**
 * The state on which all stores agree so far: the versions that were written, and since when each record has been due. Writes
 * are computed from it. It also helps to choose calls after which all stores still have the same state, although the contract
 * leaves some answers open.
 */
import type { RecordIndex } from "../../../packages/core/src/inbox/record/index-of.ts";
import type { IdempotencyRecord } from "../../../packages/core/src/inbox/record/record.ts";
import type { Write } from "./writes.ts";

/** One version of a record. */
export interface RecordVersion {
  readonly key: string;
  readonly version: string;
  readonly record: IdempotencyRecord;
  /** The record without its current lease. */
  readonly unleased: IdempotencyRecord;
  readonly index: RecordIndex;
}

/** If a due time is further away than when it was written, by more than this, a wrong clock has set it. */
const WRONG_BY_MS = 5_000;

interface DueEntry {
  readonly at: number;
  readonly originalDelayMs: number;
}

export class AgreedState {
  readonly #versions = new Map<string, RecordVersion[]>();
  readonly #dueEntries = new Map<string, DueEntry>();
  readonly #dueWithinMs: number;
  /** The writes of each call. */
  readonly calls: (readonly Write[])[] = [];

  /** A record that is written counts as due for at most `dueWithinMs`. */
  constructor(dueWithinMs: number) {
    this.#dueWithinMs = dueWithinMs;
  }

  /** The version that a store has; null if it has none, or one that has expired. */
  current(key: string, now: number): RecordVersion | null {
    const known = this.last(key);
    return known?.index.expiresAt !== null && (known?.index.expiresAt ?? 0) <= now ? null : known;
  }

  /** The version that was written last, even if it has expired; null if there is none. */
  last(key: string): RecordVersion | null {
    return this.#versions.get(key)?.at(-1) ?? null;
  }

  /** The version before the last; null if there is none. */
  earlier(key: string): RecordVersion | null {
    return this.#versions.get(key)?.at(-2) ?? null;
  }

  wrote(known: RecordVersion, now: number): void {
    const versions = this.#versions.get(known.key);
    if (versions === undefined) this.#versions.set(known.key, [known]);
    else versions.push(known);
    const { dueAt, originalDelayMs } = known.index;
    if (dueAt === null) this.#dueEntries.delete(known.key);
    else this.#dueEntries.set(known.key, { at: Math.max(dueAt, now - this.#dueWithinMs), originalDelayMs });
  }

  took(keys: readonly string[], now: number, hideMs: number): void {
    for (const key of keys) this.#dueEntries.set(key, { at: now + hideMs, originalDelayMs: hideMs });
  }

  /** Since when a record has been due. A due time that a wrong clock has set comes after all others. */
  dueSince(key: string, now: number): number {
    const at = Math.ceil(this.#dueEntries.get(key)?.at ?? Number.POSITIVE_INFINITY);
    return at <= now ? at : Number.POSITIVE_INFINITY;
  }

  /** Raises a limit, because a poll must take either all records or none that became due at the same time. */
  limitBetweenTimes(limit: number, now: number): number {
    if (limit === 0) return 0;
    const isDue = ({ at, originalDelayMs }: DueEntry): boolean =>
      at <= now || at - now > originalDelayMs + WRONG_BY_MS;
    const due = [...this.#dueEntries].flatMap(([key, entry]) =>
      isDue(entry) ? [this.dueSince(key, now)] : [],
    );
    const times = due.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    let between = limit;
    while (between < times.length && times[between] === times[between - 1]) between++;
    return between;
  }

  /** All events that were ever written, in their order. */
  events(): readonly { readonly acceptedAt: number; readonly eventId: string }[] {
    const events = new Map<string, number>();
    for (const versions of this.#versions.values()) {
      for (const { index } of versions) {
        for (const { eventId, acceptedAt } of index.events) events.set(eventId, acceptedAt);
      }
    }
    return [...events]
      .map(([eventId, acceptedAt]) => ({ eventId, acceptedAt }))
      .toSorted((a, b) => a.acceptedAt - b.acceptedAt || (a.eventId < b.eventId ? -1 : 1));
  }
}
