/**
 * Moves the records of one inbox into another. A record is written to the new store, read back from there, and only
 * then deleted from the old store. So at least one store has the record at every moment, and an interrupted move
 * continues when it is called again. Each step is a compare-and-swap. It shows when a receiver still runs on the old
 * store.
 *
 * A move that was interrupted between these steps leaves a record in both stores. The next move compares the two. If
 * only the old record has changed since, it replaces the copy. If only the copy has changed, the old record is deleted.
 * If both have changed, both stay as they are.
 */
import { checkFlag } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { type Clock, sleep } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { HANDLER_SETS_NOTE } from "./contract/handler-sets.ts";
import type {
  DueRecord,
  RecordStore,
  ScanPage,
  Swap,
  SwapResult,
  VersionedRecord,
} from "./contract/store.ts";
import { isCanary } from "./record/canary.ts";
import { isUnreadable } from "./record/codec.ts";
import { knowsAllOf } from "./record/compare-copies.ts";
import { type EventState, indexOf, type RecordIndex } from "./record/index-of.ts";
import type { IdempotencyRecord } from "./record/record.ts";

/** How many records are moved together. */
const RECORDS_PER_STEP = 100;
/** How often to try when a store does not take a write. */
const MAX_ATTEMPTS = 5;
const REFUSED_WRITE_PAUSE_MS = 300;
/** The expiry of a record that was moved away: before that of any other record. */
const EXPIRED_AT = 1;

/** Options of {@link moveRecords}. */
export interface MoveOptions {
  /** Moves nothing, but reports what would be moved and whether another process uses the old inbox. Default false. */
  readonly dryRun?: boolean | undefined;
  /** For tests: a clock, or everything that a move takes from outside. */
  readonly clock?: Clock | Environment | undefined;
}

/** The result of a move; with `dryRun`, the result that it would have. */
export interface MoveReport {
  /** Records that have left the old store, including the references of `oneSuccessPerReference`. */
  readonly records: number;
  /** The events of these records, by state. */
  readonly events: Readonly<Record<EventState, number>>;
  /** How many of these records the new store had already, in the same or a later state. */
  readonly alreadyPresent: number;
  /** Records that stay in the old store. */
  readonly notMoved: readonly {
    readonly key: string;
    /**
     * `unreadable`: a newer Payhooks wrote it, or it is damaged. `key-missing`: it is sealed with a key that the store
     * was not given. `unreadable-there`: the new store has a record of the same transaction that cannot be read.
     * `running`: a receiver of the new store is running the same transaction, and the old store has changes that the
     * new store lacks. `conflict`: each store has changes of the same transaction, reference or subject that the other
     * store lacks.
     */
    readonly why: "unreadable" | "key-missing" | "unreadable-there" | "running" | "conflict";
  }[];
}

type NotMovedReason = MoveReport["notMoved"][number]["why"];

/** A record on its way. */
interface MovingRecord {
  readonly key: string;
  readonly version: string;
  readonly record: IdempotencyRecord;
  readonly index: RecordIndex;
}

/**
 * Moves every record that has not expired from one store to another: events that are unfinished, held, or finished and kept to
 * recognise copies. Both stores must be open. With `dryRun`, `to` may be null for an inbox that does not exist yet. Stop every
 * receiver of the old store first. If a move fails, it may be called again.
 *
 * @experimental The interface of stores may still change in a minor release.
 * @throws PayhooksError `ERR_INBOX_IN_USE` when a receiver runs on the old store, `ERR_INBOX_UNAVAILABLE` when a store does not
 * take a record, `ERR_OPTION_INVALID` when both are the same store, one of them is in memory, `to` is null without `dryRun`, or
 * `dryRun` is neither true nor false.
 */
export async function moveRecords(
  from: RecordStore,
  to: RecordStore | null,
  { dryRun = false, clock }: MoveOptions = {},
): Promise<MoveReport> {
  checkFlag("dryRun of moveRecords", dryRun);
  const environment = environmentOf(clock);
  if (to !== null) checkStores(from, to);
  else if (!dryRun) {
    throw new PayhooksError("ERR_OPTION_INVALID", "There is no inbox to move to.", {
      fix: "Open the store to move to. Null is only for dryRun.",
    });
  }
  const foundCounts = new MoveCounts();
  for await (const page of pagesOf(from)) {
    for (const entry of page) {
      const moving = movingOf(entry);
      if (moving === null) foundCounts.addNotMoved(entry.key, whyUnreadable(entry));
      else foundCounts.count(moving, isLeased(moving, from));
    }
  }
  if (foundCounts.leased > 0) throw inboxInUseError(`${foundCounts.leased} of its events are leased to one`);
  if (dryRun || to === null) return foundCounts.report();
  const movedCounts = new MoveCounts();
  const mover = new Mover(from, to, environment, movedCounts);
  const stopKeepingAlive = environment.keepAlive();
  try {
    for await (const page of pagesOf(from)) await mover.move(page);
    while ((await from.prune?.(EXPIRED_AT)) === true);
    await copyHandlerSets(from, to);
  } finally {
    stopKeepingAlive();
  }
  return movedCounts.report();
}

/** Moves the names of the handlers, so that a receiver that starts on the new inbox with other handlers gets a notice. */
async function copyHandlerSets(from: RecordStore, to: RecordStore): Promise<void> {
  const [oldSets = null, newSets = null] = [
    await from.readNote?.(HANDLER_SETS_NOTE),
    await to.readNote?.(HANDLER_SETS_NOTE),
  ];
  if (oldSets !== null && newSets === null) await to.writeNote?.(HANDLER_SETS_NOTE, oldSets);
}

function checkStores(from: RecordStore, to: RecordStore): void {
  if (from.scan === undefined || to.endsWithProcess === true) {
    throw new PayhooksError("ERR_OPTION_INVALID", "Nothing can be moved from or to an inbox in memory.", {
      fix: "It ends with its process. Stop the process gracefully, so that its events run to their end.",
    });
  }
  if (from.datasetId !== to.datasetId) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "Both addresses lead to the same inbox.", {
    fix: "Name another file, server, schema or prefix to move to.",
  });
}

async function* pagesOf(store: RecordStore): AsyncIterable<readonly DueRecord[]> {
  let cursor: string | null = null;
  do {
    const page: ScanPage | undefined = await store.scan?.(cursor, RECORDS_PER_STEP);
    if (page === undefined) return;
    yield page.records.filter(({ key }) => !isCanary(key));
    cursor = page.next;
  } while (cursor !== null);
}

/** Null for a record that cannot be read. */
function movingOf({ key, version, record }: DueRecord): MovingRecord | null {
  if (isUnreadable(record)) return null;
  return { key, version, record, index: indexOf(key, record) };
}

function whyUnreadable({ record }: DueRecord): "unreadable" | "key-missing" {
  return isUnreadable(record) && record.code === "ERR_SEAL_KEY_MISSING" ? "key-missing" : "unreadable";
}

function isLeased({ key, record }: MovingRecord, store: RecordStore): boolean {
  return record.lease !== null && record.lease.until > store.now(key);
}

/** Counts the records that were found or moved. */
class MoveCounts {
  leased = 0;
  #records = 0;
  #alreadyPresent = 0;
  readonly #events = { waiting: 0, retrying: 0, running: 0, held: 0, finished: 0 };
  readonly #notMoved: MoveReport["notMoved"][number][] = [];

  count({ index }: MovingRecord, isLeased: boolean): void {
    this.#records++;
    if (isLeased) this.leased++;
    for (const { state } of index.events) this.#events[state]++;
  }

  countAlreadyPresent(): void {
    this.#alreadyPresent++;
  }

  addNotMoved(key: string, why: NotMovedReason): void {
    this.#notMoved.push({ key, why });
  }

  report(): MoveReport {
    return {
      records: this.#records,
      events: { ...this.#events },
      alreadyPresent: this.#alreadyPresent,
      notMoved: this.#notMoved,
    };
  }
}

/** A write of a move, without its date. */
type MovingWrite = Omit<Swap, "at" | "shouldAnnounce">;

class Mover {
  readonly #from: RecordStore;
  readonly #to: RecordStore;
  readonly #environment: Environment;
  readonly #counts: MoveCounts;

  constructor(from: RecordStore, to: RecordStore, environment: Environment, counts: MoveCounts) {
    this.#from = from;
    this.#to = to;
    this.#environment = environment;
    this.#counts = counts;
  }

  async move(page: readonly DueRecord[]): Promise<void> {
    const movingByKey = new Map<string, MovingRecord>();
    for (const entry of page) {
      const moving = movingOf(entry);
      if (moving === null) this.#counts.addNotMoved(entry.key, whyUnreadable(entry));
      else if (isLeased(moving, this.#from))
        throw inboxInUseError("it has begun to run an event during the move");
      else movingByKey.set(entry.key, moving);
    }
    const presentRecords = await this.#copyToTarget([...movingByKey.values()]);
    await this.#to.replicated?.(presentRecords.map(({ key, version }) => ({ key, version })));
    await this.#removeFromSource(presentRecords.flatMap(({ key }) => movingByKey.get(key) ?? []));
  }

  /**
   * Writes the records that the new store lacks, or of which it has an outdated copy, until a read finds them there.
   * Resolves to the versions in the new store.
   */
  async #copyToTarget(
    records: readonly MovingRecord[],
  ): Promise<readonly { key: string; version: string }[]> {
    const presentRecords: { key: string; version: string }[] = [];
    const writtenKeys = new Set<string>();
    let missingRecords = records;
    for (let attempt = 0; missingRecords.length > 0; attempt++) {
      const foundRecords = await this.#to.read(missingRecords.map(({ key }) => key));
      const outdatedCopies = new Map<string, MovingRecord>();
      missingRecords = missingRecords.filter((moving, position) => {
        const { key, index } = moving;
        const current = foundRecords[position] ?? null;
        // A record that has expired by now is not found, and need not be.
        if (current === null) return (index.expiresAt ?? Infinity) > this.#to.now(key);
        const nextStep = nextStepOf(moving, current, this.#to);
        if (nextStep === "present") {
          if (!writtenKeys.has(key)) this.#counts.countAlreadyPresent();
          presentRecords.push({ key, version: current.version });
          return false;
        }
        if (typeof nextStep !== "string") {
          outdatedCopies.set(key, nextStep);
          return true;
        }
        this.#counts.addNotMoved(key, nextStep);
        return false;
      });
      if (missingRecords.length === 0) break;
      for (const { key } of missingRecords) writtenKeys.add(key);
      await this.#swap(this.#to, missingRecords, attempt, (moving) => {
        const { version: expected = null, index: before = null } = outdatedCopies.get(moving.key) ?? {};
        return { ...moving, expected, before };
      });
    }
    return presentRecords;
  }

  /** Empties records of the old store. If one was written since it was read, a receiver runs there. */
  async #removeFromSource(movedRecords: readonly MovingRecord[]): Promise<void> {
    let remaining = movedRecords;
    for (let attempt = 0; remaining.length > 0; attempt++) {
      await this.#swap(this.#from, remaining, attempt, (moving) => this.#emptyingOf(moving));
      const foundRecords = await this.#from.read(remaining.map(({ key }) => key));
      const changedRecords = remaining.filter(
        ({ version }, index) => (foundRecords[index]?.version ?? version) !== version,
      );
      for (const moving of remaining.filter((_, index) => (foundRecords[index] ?? null) === null)) {
        this.#counts.count(moving, false);
      }
      if (changedRecords.length > 0) {
        const isUndone = await this.#undo(changedRecords);
        throw inboxInUseError(
          `it has changed an event during the move${isUndone ? "" : ", and a receiver of the new inbox has it too"}`,
        );
      }
      remaining = remaining.filter((_, index) => (foundRecords[index] ?? null) !== null);
    }
  }

  /** Removes records from the new store if they have changed in the old one, so that they run in one store only. */
  async #undo(changedRecords: readonly MovingRecord[]): Promise<boolean> {
    const results = await this.#to.swap(
      swapsOf(this.#to, changedRecords, (moving) => this.#emptyingOf(moving)),
    );
    return results.every(({ kind }) => kind === "written");
  }

  /** The write that empties a record. */
  #emptyingOf(moving: MovingRecord): MovingWrite {
    const version = this.#environment.token();
    return { ...emptyRecordOf(moving), version, expected: moving.version, before: moving.index };
  }

  async #swap(
    store: RecordStore,
    records: readonly MovingRecord[],
    attempt: number,
    writeOf: (moving: MovingRecord) => MovingWrite,
  ): Promise<void> {
    if (attempt > 0) await sleep(this.#environment, REFUSED_WRITE_PAUSE_MS);
    const results = await store.swap(swapsOf(store, records, writeOf));
    const failedResults = results.filter(({ kind }) => kind !== "written");
    const refusedResults = failedResults.filter(({ kind }) => kind === "refused");
    if (refusedResults.length === 0 && (failedResults.length === 0 || attempt + 1 < MAX_ATTEMPTS)) return;
    const causeOf = (result: SwapResult): readonly unknown[] => ("cause" in result ? [result.cause] : []);
    const [cause] = [...refusedResults, ...failedResults].flatMap(causeOf);
    throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "An inbox did not take a record that was moved.", {
      fix: "Nothing is lost: each record is in the old inbox or the new one. Look at the cause, and move again.",
      cause,
    });
  }
}

/** Decides about a record of which the new store has a copy already. Returns the copy if it must be replaced. */
function nextStepOf(
  moving: MovingRecord,
  current: VersionedRecord,
  to: RecordStore,
): "present" | NotMovedReason | MovingRecord {
  const copy = movingOf({ key: moving.key, ...current });
  if (copy === null) return "unreadable-there";
  if (copy.version === moving.version) return "present";
  const isOutdated = knowsAllOf(moving.record, copy.record);
  const isRunning = isLeased(copy, to);
  if (isOutdated && !isRunning) return copy;
  if (knowsAllOf(copy.record, moving.record)) return "present";
  return isOutdated ? "running" : "conflict";
}

/** The record in an ended and expired form. Every store treats such a record as absent. */
function emptyRecordOf({ key, record }: MovingRecord): Pick<Swap, "key" | "record" | "index"> {
  const nothing = { lease: null, slots: {}, statusSlot: null };
  return {
    key,
    record: { ...record, ...nothing, isClosed: true, expiresAt: EXPIRED_AT },
    index: {
      dueAt: null,
      originalDelayMs: 0,
      isLeased: false,
      lane: "usual",
      expiresAt: EXPIRED_AT,
      events: [],
    },
  };
}

/** The writes in the order of their keys, dated by the store. */
function swapsOf(
  store: RecordStore,
  records: readonly MovingRecord[],
  writeOf: (moving: MovingRecord) => MovingWrite,
): readonly Swap[] {
  return records
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map((moving) => ({ ...writeOf(moving), at: store.now(moving.key), shouldAnnounce: false }));
}

function inboxInUseError(detail: string): PayhooksError {
  return new PayhooksError(
    "ERR_INBOX_IN_USE",
    `A receiver runs on the inbox that is to be moved: ${detail}.`,
    {
      fix: "Stop every process that uses it, and move again. If a process has died, its lease ends within leaseMs (30 s).",
    },
  );
}
