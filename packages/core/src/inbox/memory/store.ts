import { LRUCache } from "lru-cache";
import type { Clock } from "../../clock.ts";
import { PayhooksError } from "../../errors.ts";
import { InFlight } from "../in-flight.ts";
import {
  type Accepted,
  type AcceptOutcome,
  type Held,
  type HeldFilter,
  type Job,
  recordKeyOf,
  slotKeyOf,
} from "../inbox.ts";
import { pack, signedAtOf, unpack } from "../pack.ts";
import type { IdempotencyRecord } from "../record.ts";
import * as records from "../steps.ts";
import type { IdempotencyStore } from "../store.ts";

/** Looking for claims that are over means looking at all of them. */
const PURGE_EVERY_MS = 60_000;

/** Bounds of the memory store. */
export interface MemoryStoreOptions {
  readonly clock: Clock;
  /** Finished records that are kept. */
  readonly maxRecords: number;
  /** Events that are accepted but not finished; beyond, deliveries are answered 503. Held ones count apart. */
  readonly maxUnfinished: number;
  /** Queues the job in the step that accepts it. Left out, the inbox does that in steps of its own. */
  readonly enqueue?: (job: Job, delayMs: number) => void;
}

/** A memory store, and what its composition and the test harness need beside the interface. */
export interface MemoryStore extends IdempotencyStore {
  /** Puts a record back to an earlier state: the harness's way to die at a chosen moment. */
  snapshot(key: string): IdempotencyRecord | null;
  restore(key: string, record: IdempotencyRecord): void;
  /** Records in memory, and the time before which signed events can no longer be told from new ones. */
  size(): { readonly finished: number; readonly unfinished: number; readonly signedBefore: number };
}

/**
 * Records in this process. Unfinished ones stay whatever happens; finished ones are packed into a bounded cache
 * with a lifetime. When the bound throws one out early, every unknown event that was signed before it is refused
 * from then on, so that the loss of memory never runs an event twice.
 */
export function memoryStore({ clock, maxRecords, maxUnfinished, enqueue }: MemoryStoreOptions): MemoryStore {
  const open = new InFlight<string, IdempotencyRecord>();
  let unfinished = 0;
  let held = 0;
  let signedBefore = Number.NEGATIVE_INFINITY;
  const finished = new LRUCache<string, string>({
    max: maxRecords,
    dispose(packed, _key, reason) {
      if (reason === "evict") signedBefore = Math.max(signedBefore, signedAtOf(packed));
    },
  });
  /** Made when it is first needed: seldom is `oneSuccessPerReference` on. */
  let references: LRUCache<string, string> | null = null;

  let nextPurgeAt = 0;

  /** A claim that was dropped early would let a second SUCCESS run: where there is no room, the service is to wait. */
  function makeRoomForReference(now: number): void {
    if (references === null || references.size < maxRecords) return;
    if (now >= nextPurgeAt) {
      references.purgeStale();
      nextPurgeAt = now + PURGE_EVERY_MS;
    }
    if (references.size < maxRecords) return;
    throw new PayhooksError("ERR_INBOX_FULL", `The memory inbox knows ${maxRecords} references, its bound.`, {
      fix: "Raise memoryInbox({ maxRecords }), or use an inbox on disk or Redis.",
    });
  }

  function load(key: string): IdempotencyRecord | null {
    return open.get(key) ?? loadFinished(key);
  }

  function loadFinished(key: string): IdempotencyRecord | null {
    const packed = finished.get(key);
    if (packed === undefined) return null;
    const record = unpack(packed);
    return record.expiresAt > clock.now() ? record : null;
  }

  /** Runs one atomic step on a record and puts the record where it belongs. */
  function change<T>(
    key: string,
    step: (record: IdempotencyRecord | null) => { record: IdempotencyRecord | null; answer: T },
  ): T {
    const opened = open.get(key);
    const before = opened ?? loadFinished(key);
    const was = tallyOf(before);
    const { record, answer } = step(before);
    if (record === null) return answer;
    const is = tallyOf(record);
    unfinished += is.unfinished - was.unfinished;
    held += is.held - was.held;
    if (is.unfinished + is.held > 0) {
      if (record !== opened) open.set(key, record);
      if (opened === undefined && before !== null) finished.delete(key);
    } else {
      if (opened !== undefined) open.delete(key);
      finished.set(whole(key), pack(record));
    }
    return answer;
  }

  /** As {@link change}, for the slot of an event. */
  function changeSlot<T>(
    job: Pick<Job, "eventId">,
    step: (record: IdempotencyRecord | null, slot: string) => T,
  ): T {
    return change(recordKeyOf(job.eventId), (record) => ({
      record,
      answer: step(record, slotKeyOf(job.eventId)),
    }));
  }

  return {
    ready: async () => {},
    accept(event, { maxHeld, delayMs }) {
      const accepted = change(event.key, (before): { record: IdempotencyRecord | null; answer: Accepted } => {
        const known = before !== null;
        const mayBeForgotten = event.signedAt !== null && event.signedAt <= signedBefore;
        if (!known && mayBeForgotten && event.evenIfExpired !== true) {
          const job = { eventId: event.key + event.slot, replay: 0 };
          const expired = {
            outcome: "expired",
            job,
            pending: false,
            reason: null,
            detail: null,
            previousAmount: null,
          } as const;
          return { record: null, answer: { ...expired, signedBefore } };
        }
        const reference = records.claimedReference(before, event);
        const owner = reference === null ? undefined : references?.get(reference);
        const referenceReused = owner !== undefined && owner !== event.key;
        const now = clock.now();
        if (reference !== null && owner === undefined) makeRoomForReference(now);
        const admit = (outcome: AcceptOutcome): void => {
          if (outcome === "new" || outcome === "progress") checkRoom(unfinished, maxUnfinished);
          if (outcome === "held") records.checkHeldRoom(held, maxHeld);
        };
        const { record, accepted } = records.accept(before, event, { now, referenceReused, admit });
        if (reference !== null && !referenceReused) {
          const wanted = Math.max(now, event.signedAt ?? 0) + event.retentionMs - now;
          // A copy that was signed earlier does not shorten it.
          const ttl =
            owner === undefined ? wanted : Math.max(wanted, references?.getRemainingTTL(reference) ?? 0);
          references ??= new LRUCache({ max: maxRecords, ttl: 1, ttlResolution: 0, perf: clock });
          references.set(reference, event.key, { ttl });
        }
        if (enqueue !== undefined && accepted.pending)
          records.markQueued(record, slotKeyOf(accepted.job.eventId), accepted.job);
        return { record, answer: accepted };
      });
      if (enqueue === undefined || !accepted.pending) return accepted;
      enqueue(accepted.job, delayMs);
      return { ...accepted, pending: false };
    },
    markQueued: (job) => changeSlot(job, (record, key) => records.markQueued(record, key, job)),
    begin: (job, options) =>
      changeSlot(job, (record, key) => records.begin(record, key, job, options, clock.now())),
    // These two change no slot's state, and only what runs: the record stays where it is.
    renew: ({ eventId }, token, leaseMs) =>
      records.renew(load(recordKeyOf(eventId)), slotKeyOf(eventId), token, leaseMs, clock.now()),
    step: ({ eventId }, token, name, made) =>
      records.step(load(recordKeyOf(eventId)), slotKeyOf(eventId), token, name, made, clock.now()),
    finish: (job, token, ending) =>
      changeSlot(job, (record, key) => records.finish(record, key, job, token, ending, clock.now())),
    async read(eventId) {
      return records.lifeOf(load(recordKeyOf(eventId)), eventId);
    },
    listHeld: (filter) => listHeld(open, filter),
    replay: async (eventId, decision) =>
      changeSlot({ eventId }, (record, key) => records.replay(record, key, eventId, decision, clock.now())),
    discard: async (eventId, decision) =>
      changeSlot({ eventId }, (record, key) => records.discard(record, key, decision, clock.now())),
    async counts() {
      let running = 0;
      for (const [, { lease }] of open.entries()) if (lease !== null) running++;
      return { waiting: Math.max(0, unfinished - running), running, held };
    },
    close: async () => {},
    snapshot: (key) => structuredClone(load(key)),
    restore: (key, record) => change(key, () => ({ record, answer: undefined })),
    size: () => ({ finished: finished.size, unfinished: open.size, signedBefore }),
  };
}

function checkRoom(unfinished: number, maxUnfinished: number): void {
  if (unfinished < maxUnfinished) return;
  throw new PayhooksError(
    "ERR_INBOX_FULL",
    `The memory inbox holds ${unfinished} unfinished events, its bound.`,
    {
      fix: "Make the handlers faster, raise memoryInbox({ maxUnfinished }), or use an inbox on disk or Redis.",
    },
  );
}

/** A text that was cut from another one keeps all of that in memory; this one stands alone. */
function whole(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

/** How many slots of a record wait or run, and how many are held. */
function tallyOf(record: IdempotencyRecord | null): { readonly unfinished: number; readonly held: number } {
  let unfinished = 0;
  let held = 0;
  for (const key in record?.slots) {
    const state = record?.slots[key]?.state;
    if (state === "waiting" || state === "running") unfinished++;
    else if (state === "held") held++;
  }
  return { unfinished, held };
}

async function* listHeld(
  open: InFlight<string, IdempotencyRecord>,
  filter: HeldFilter,
): AsyncGenerator<Held> {
  let left = filter.limit ?? Number.POSITIVE_INFINITY;
  for (const [key, record] of open.entries()) {
    for (const slotKey of Object.keys(record.slots)) {
      const entry = records.heldOf(record, key + slotKey);
      if (entry === null || !records.matchesFilter(entry, filter)) continue;
      if (left-- <= 0) return;
      yield entry;
    }
  }
}
