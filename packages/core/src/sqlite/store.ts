import type { Clock } from "../clock.ts";
import {
  type Accepted,
  type AcceptOutcome,
  type Held,
  type HeldFilter,
  type Job,
  recordKeyOf,
  slotKeyOf,
} from "../inbox/inbox.ts";
import type { IdempotencyRecord } from "../inbox/record.ts";
import * as records from "../inbox/steps.ts";
import type { IdempotencyStore } from "../inbox/store.ts";
import type { Batch } from "./batch.ts";
import type { SqliteDatabase } from "./driver.ts";
import { jobAdder } from "./queue.ts";
import type { Records } from "./records.ts";

/** What a store and a queue on one file share. */
export interface SqliteFile {
  readonly database: SqliteDatabase;
  readonly rows: Records;
  readonly batch: Batch;
  readonly clock: Clock;
}

/** What a step makes of a record: null when nothing is to be written. */
interface Change<T> {
  readonly record: IdempotencyRecord | null;
  readonly answer: T;
  /** A job that is queued with it. */
  readonly queue?: { readonly job: Job; readonly due: number };
}

/** Expired records that go with one write, so that no delivery waits for a long clean-up. */
const PRUNED_AT_ONCE = 50;
/** How long nothing is looked for once nothing more is expired. */
const PRUNE_EVERY_MS = 1_000;
const HELD_PAGE = 100;

/**
 * Idempotency records in SQLite. Accepting an event and queueing its job are one transaction: a slot is never claimed
 * without being queued.
 */
export function sqliteStore(
  { database, rows, batch, clock }: SqliteFile,
  onQueued: () => void,
): IdempotencyStore {
  const addHeld = database.prepare("INSERT OR IGNORE INTO held (event, at) VALUES (?, ?)");
  const removeHeld = database.prepare("DELETE FROM held WHERE event = ?");
  const countHeld = database.prepare("SELECT count(*) AS n FROM held");
  const pageHeld = database.prepare(
    "SELECT event, at FROM held WHERE (at, event) > (?, ?) ORDER BY at, event LIMIT ?",
  );
  const findReference = database.prepare("SELECT owner FROM refs WHERE key = ? AND expires > ?");
  const claimReference = database.prepare(
    "INSERT INTO refs (key, owner, expires) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, expires = max(expires, excluded.expires)",
  );
  const addJob = jobAdder(database);
  const pruneRecords = database.prepare(
    "DELETE FROM records WHERE key IN (SELECT key FROM records WHERE expires < ? LIMIT ?)",
  );
  const pruneReferences = database.prepare(
    "DELETE FROM refs WHERE key IN (SELECT key FROM refs WHERE expires < ? LIMIT ?)",
  );
  const changes = database.prepare("SELECT changes() AS n");
  let pruneAt = 0;

  /** One step of a record, inside the transaction of this turn. */
  function change<T>(key: string, step: (record: IdempotencyRecord | null) => Change<T>): T {
    const row = rows.take(key, clock.now());
    const heldBefore = records.heldSlots(row.record);
    const { record, answer, queue } = step(row.record);
    if (record === null) return answer;
    const place = rows.write(row, record);
    const heldAfter = records.heldSlots(record);
    for (const slot of heldAfter) {
      if (!heldBefore.has(slot)) addHeld.run(key + slot, record.slots[slot]?.work?.heldAt ?? clock.now());
    }
    for (const slot of heldBefore) if (!heldAfter.has(slot)) removeHeld.run(key + slot);
    if (queue !== undefined) addJob(queue.job, place, queue.due);
    prune();
    return answer;
  }

  function changeSlot<T>(
    { eventId }: Pick<Job, "eventId">,
    step: (record: IdempotencyRecord | null, slot: string) => T,
  ): Promise<T> {
    const slot = slotKeyOf(eventId);
    return batch.run(() =>
      change(recordKeyOf(eventId), (record) => ({ record, answer: step(record, slot) })),
    );
  }

  /** While there is more that is expired, each write takes some of it along: it goes faster than it came. */
  function prune(): void {
    const now = clock.now();
    if (now < pruneAt) return;
    pruneRecords.run(now, PRUNED_AT_ONCE);
    const more = Number((changes.get() as { n: number }).n) === PRUNED_AT_ONCE;
    pruneReferences.run(now, PRUNED_AT_ONCE);
    const moreReferences = Number((changes.get() as { n: number }).n) === PRUNED_AT_ONCE;
    if (!more && !moreReferences) pruneAt = now + PRUNE_EVERY_MS;
  }

  function heldCount(): number {
    return Number((countHeld.get() as { n: number }).n);
  }

  return {
    ready: async () => {},
    async accept(event, { maxHeld, delayMs }) {
      let queued = false;
      const step = (before: IdempotencyRecord | null): Change<Accepted> => {
        const now = clock.now();
        const reference = records.claimedReference(before, event);
        const claim =
          reference === null ? null : (findReference.get(reference, now) as { owner: string } | null);
        // Drivers answer null or undefined where there is no row.
        const referenceReused = claim != null && claim.owner !== event.key;
        const admit = (outcome: AcceptOutcome): void => {
          if (outcome === "held") records.checkHeldRoom(heldCount(), maxHeld);
        };
        const { record, accepted: answer } = records.accept(before, event, { now, referenceReused, admit });
        if (reference !== null && !referenceReused) {
          const expires = Math.ceil(Math.max(now, event.signedAt ?? 0) + event.retentionMs);
          claimReference.run(reference, event.key, expires);
        }
        if (!answer.pending || record === null) return { record, answer };
        const slot = record.slots[slotKeyOf(answer.job.eventId)];
        if (slot !== undefined) slot.queued = true;
        queued = true;
        return {
          record,
          answer: { ...answer, pending: false },
          queue: { job: answer.job, due: now + delayMs },
        };
      };
      const accepted = await batch.run(() => change(event.key, step));
      if (queued) onQueued();
      return accepted;
    },
    markQueued: (job) => changeSlot(job, (record, key) => records.markQueued(record, key, job)),
    begin: (job, options) =>
      changeSlot(job, (record, key) => records.begin(record, key, job, options, clock.now())),
    renew: (job, token, leaseMs) =>
      changeSlot(job, (record, key) => records.renew(record, key, token, leaseMs, clock.now())),
    step: (job, token, name, made) =>
      changeSlot(job, (record, key) => records.step(record, key, token, name, made, clock.now())),
    finish: (job, token, ending) =>
      changeSlot(job, (record, key) => records.finish(record, key, job, token, ending, clock.now())),
    async read(eventId) {
      return records.lifeOf(rows.read(recordKeyOf(eventId), clock.now()), eventId);
    },
    listHeld,
    replay: (eventId, decision) =>
      changeSlot({ eventId }, (record, key) => records.replay(record, key, eventId, decision, clock.now())),
    discard: (eventId, decision) =>
      changeSlot({ eventId }, (record, key) => records.discard(record, key, decision, clock.now())),
    async counts() {
      return { waiting: null, running: null, held: heldCount() };
    },
    async close() {
      await batch.idle();
      try {
        // Some drivers close when they are collected: from here on the file has everything, and can be copied alone.
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch {
        // Another process still uses the log, and will do it.
      }
      database.close();
    },
  };

  async function* listHeld(filter: HeldFilter): AsyncGenerator<Held> {
    let left = filter.limit ?? Number.POSITIVE_INFINITY;
    let last: { event: string; at: number } = { event: "", at: -1 };
    while (left > 0) {
      const page = pageHeld.all(last.at, last.event, HELD_PAGE) as { event: string; at: number }[];
      for (const row of page) {
        last = row;
        const entry = records.heldOf(rows.read(recordKeyOf(row.event), clock.now()), row.event);
        if (entry === null || !records.matchesFilter(entry, filter)) continue;
        yield entry;
        if (--left <= 0) return;
      }
      if (page.length < HELD_PAGE) return;
    }
  }
}
