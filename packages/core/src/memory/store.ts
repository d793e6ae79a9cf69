import { InFlightMap } from "../collections/in-flight-map.ts";
import type {
  DueRecords,
  RecordStore,
  StoreCounts,
  Swap,
  SwapResult,
  VersionedRecord,
} from "../inbox/contract/store.ts";
import { isCanary } from "../inbox/record/canary.ts";
import { isUnreadable } from "../inbox/record/codec.ts";
import { type EventLabels, indexOf, type RecordIndex } from "../inbox/record/index-of.ts";
import type { Lanes } from "../inbox/record/lane.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import { ListPageBuilder } from "../inbox/search/listing.ts";
import { checkCount } from "../protocol/check-number.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { Clock } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { DueTimes } from "./due-times.ts";
import { FinishedRecords } from "./finished-records.ts";
import type { OpenRecord } from "./open-record.ts";
import { References } from "./references.ts";
import { countUnfinished, Tally } from "./tally.ts";

/** A write that was computed longer ago than this has to be computed again. */
const MAX_WRITE_AGE_MS = 5_000;
/** How many finished records are read in one turn of the event loop. */
const RECORDS_PER_TURN = 500;

const WRITTEN_RESULT: SwapResult = { kind: "written" };

/** Options of {@link memoryStore}. */
export interface MemoryStoreOptions {
  /** How many finished records, and how many references, are kept. Default 100,000. */
  readonly maxRecords?: number | undefined;
  /** How many events may wait or run. Default 10,000. */
  readonly maxUnfinished?: number | undefined;
  /** For tests: a clock, or everything that the store takes from outside. */
  readonly clock?: Clock | Environment | undefined;
}

/** A store in memory, whose answers are synchronous. */
export interface MemoryStore extends RecordStore {
  /** As in every store, but synchronous. */
  read(keys: readonly string[]): readonly (VersionedRecord | null)[];
  /** As in every store, but synchronous. */
  swap(items: readonly Swap[]): readonly SwapResult[];
  /** As in every store, but synchronous. */
  takeDue(limit: Lanes, hideMs: number): DueRecords;
  /** As in every store, but synchronous. */
  counts(): StoreCounts;
  /** The latest signed time of any finished record of this tenant that had to make room. It is never in the future. */
  forgottenBefore(tenant: string): number;
  /** For tests: sets a record back to an earlier state, whatever it is now, as if the process had died at that moment. */
  restore(key: string, versioned: VersionedRecord): void;
}

/**
 * Keeps records in this process. Unfinished and held events always stay. Finished records are packed into a bounded cache.
 * `forgottenBefore` tells which events it may have dropped, so that no event runs twice.
 */
export function memoryStore({
  maxRecords = 100_000,
  maxUnfinished = 10_000,
  clock,
}: MemoryStoreOptions = {}): MemoryStore {
  checkCount("maxRecords", maxRecords);
  checkCount("maxUnfinished", maxUnfinished);
  const environment = environmentOf(clock);
  const openRecords = new InFlightMap<string, OpenRecord>();
  const finishedRecords = new FinishedRecords(maxRecords);
  const references = new References(maxRecords);
  const dueTimes = new DueTimes();
  const tally = new Tally();
  let datasetId = "";
  let writeCount = 0;

  function find(key: string, now: number): VersionedRecord | null {
    return openRecords.get(key) ?? finishedRecords.get(key, now) ?? references.get(key, now);
  }

  function write(item: Swap, now: number): SwapResult {
    const { key, index } = item;
    const current = find(key, now);
    const isTimely = item.at <= now && item.at >= now - MAX_WRITE_AGE_MS;
    if (!isTimely || (current?.version ?? null) !== item.expected) return { kind: "conflict", current };
    const isReference = isEmpty(item.record) && index.dueAt === null;
    if (isReference && !references.hasRoomFor(key, item.record.tenant, now)) {
      return { kind: "refused", cause: referencesFullError(maxRecords) };
    }
    if (
      item.expected === null &&
      item.record.signedAt > now &&
      !finishedRecords.hasRoomAhead(item.record.tenant)
    ) {
      return { kind: "refused", cause: futureEventsFullError(maxRecords) };
    }
    if (tally.unfinished >= maxUnfinished) {
      const before = openRecords.get(key)?.index;
      if (roomOf(key, index) > (before === undefined ? 0 : roomOf(key, before))) {
        return { kind: "refused", cause: eventsFullError(tally.unfinished) };
      }
    }
    put(key, item.version, item.record, index, now);
    return WRITTEN_RESULT;
  }

  function put(
    key: string,
    version: string,
    record: IdempotencyRecord,
    index: RecordIndex,
    now: number,
  ): void {
    const before = openRecords.get(key);
    if (before !== undefined) {
      tally.count(before.index.events, -1);
      dueTimes.remove(before);
    }
    if (index.expiresAt !== null && index.expiresAt <= now) {
      openRecords.delete(key);
      references.delete(key);
    } else if (isEmpty(record) && index.dueAt === null) {
      // A subject is among the open records only while it is leased, and its lease has ended.
      openRecords.delete(key);
      references.set(key, version, record);
    } else if (index.expiresAt !== null) {
      openRecords.delete(key);
      finishedRecords.set(key, version, record, now);
    } else {
      finishedRecords.delete(key);
      tally.count(index.events, 1);
      const entry: OpenRecord = {
        key,
        version,
        record,
        index,
        order: writeCount++,
        availableAt: index.dueAt ?? 0,
        availableInMs: index.originalDelayMs,
        heap: null,
        position: 0,
      };
      openRecords.set(key, entry);
      dueTimes.add(entry, now);
    }
  }

  async function forEachFinished(
    mayFit: (folded: string) => boolean,
    visit: (versioned: VersionedRecord, events: readonly EventLabels[]) => void,
  ): Promise<void> {
    let readCount = 0;
    for (const key of finishedRecords.keys()) {
      if (++readCount % RECORDS_PER_TURN === 0) await new Promise<void>((go) => environment.nextTurn(go));
      if (!finishedRecords.mayFit(key, mayFit)) continue;
      const versioned = finishedRecords.peek(key, environment.now());
      if (versioned === null || isUnreadable(versioned.record)) continue;
      visit(versioned, indexOf(key, versioned.record).events);
    }
  }

  return {
    durability: "process",
    immediate: true,
    endsWithProcess: true,
    get datasetId() {
      return datasetId;
    },
    async open() {
      if (datasetId === "") datasetId = environment.token();
    },
    read(keys) {
      const now = environment.now();
      return keys.map((key) => find(key, now));
    },
    swap(items) {
      const now = environment.now();
      return items.map((item) => write(item, now));
    },
    takeDue(limit, hideMs) {
      const now = environment.now();
      const records = dueTimes.take(limit, hideMs, now);
      return { records, left: dueTimes.countDue(now), nextDueAt: dueTimes.nextDueAt };
    },
    now: () => environment.now(),
    async list(filter, cursor, limit, first = "oldest") {
      const listing = new ListPageBuilder(filter, cursor, first);
      for (const [, entry] of openRecords.entries()) listing.add(entry, entry.index.events);
      if (filter.state === "finished" || filter.state === "any") {
        // Most records need not be decoded to see that they do not match. Their texts contain no digests, so a digest
        // is left out here.
        const texts = [filter.id ?? "", filter.referenceId ?? ""]
          .filter((text) => !text.startsWith("sha256:"))
          .map((text) => JSON.stringify(text).slice(1, -1));
        await forEachFinished(
          (folded) => texts.every((text) => folded.includes(text)),
          (versioned, events) => listing.add(versioned, events),
        );
      }
      return listing.page(limit);
    },
    counts: () => ({ ...tally.counts, oldestDueAt: dueTimes.oldestDueAt(environment.now()) }),
    forgottenBefore: (tenant) => finishedRecords.forgottenBefore(tenant),
    async close() {},
    restore(key, { version, record }) {
      if (!isUnreadable(record)) put(key, version, record, indexOf(key, record), environment.now());
    },
  };
}

/** True for a reference, a subject and a shared text, which have no events. */
function isEmpty({ slots }: IdempotencyRecord): boolean {
  for (const _ in slots) return false;
  return true;
}

/**
 * How much a record counts: its events that wait or run, or one for a canary, which takes the place of an event. A
 * subject counts nothing, because an event that is counted already needs it to run.
 */
function roomOf(key: string, { events, dueAt }: RecordIndex): number {
  return isCanary(key) && dueAt !== null ? 1 : countUnfinished(events);
}

function eventsFullError(unfinished: number): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_FULL",
    `The memory inbox holds ${unfinished} unfinished events, which is its limit.`,
    {
      fix: "Make the handlers faster, raise memoryInbox({ maxUnfinished }), or use an inbox on disk or Redis.",
    },
  );
}

/** The error if too many of the records that are kept were signed in the future. Dropping one would let its event run again. */
function futureEventsFullError(maxRecords: number): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_FULL",
    `The memory inbox has no room for a further event of this tenant that was signed in the future: it keeps ${maxRecords} finished ones in all.`,
    {
      fix: "If the clock of this machine is behind, set it. Otherwise raise memoryInbox({ maxRecords }), or use an inbox on disk or Redis.",
    },
  );
}

/**
 * The error if there is no room for a reference, or a subject. Dropping one early would let a second SUCCESS run, or an
 * older event, so the service has to wait.
 */
function referencesFullError(maxRecords: number): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_FULL",
    `The memory inbox has no room for a further reference or subject of this tenant: it keeps ${maxRecords} in all.`,
    {
      fix: "Raise memoryInbox({ maxRecords }), or use an inbox on disk or Redis.",
    },
  );
}
