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
import { HANDLERS } from "./contract/handler-sets.ts";
import type { DueRecord, RecordStore, Scanned, Swap, SwapResult, Versioned } from "./contract/store.ts";
import { isCanary } from "./record/canary.ts";
import { isUnreadable } from "./record/codec.ts";
import { knowsAllOf } from "./record/compare-copies.ts";
import { type EventState, indexOf, type RecordIndex } from "./record/index-of.ts";
import type { IdempotencyRecord } from "./record/record.ts";

/** How many records are moved together. */
const RECORDS_PER_STEP = 100;
/** How often to try when a store does not take a write. */
const ATTEMPTS = 5;
const PAUSE_MS = 300;
/** The expiry of a record that was moved away: before that of any other record. */
const LONG_AGO = 1;

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
  readonly thereBefore: number;
  /** Records that stay in the old store. */
  readonly left: readonly {
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

type WhyLeft = MoveReport["left"][number]["why"];

/** A record on its way. */
interface Moving {
  readonly key: string;
  readonly version: string;
  readonly record: IdempotencyRecord;
  readonly index: RecordIndex;
}

/**
 * Moves every record that has not expired from one store to another: events that are unfinished, held, or finished and kept to
 * recognise copies. Both stores must be open. Stop every receiver of the old store first. If a move fails, it may be called
 * again.
 *
 * @experimental The interface of stores may still change in a minor release.
 * @throws PayhooksError `ERR_INBOX_IN_USE` when a receiver runs on the old store, `ERR_INBOX_UNAVAILABLE` when a store does not
 * take a record, `ERR_OPTION_INVALID` when both are the same store, one of them is in memory, or
 * `dryRun` is neither true nor false.
 */
export async function moveRecords(
  from: RecordStore,
  to: RecordStore,
  { dryRun = false, clock }: MoveOptions = {},
): Promise<MoveReport> {
  checkFlag("dryRun of moveRecords", dryRun);
  const environment = environmentOf(clock);
  checkStores(from, to);
  const found = new MoveCounts();
  for await (const page of pagesOf(from)) {
    for (const one of page) {
      const moving = movingOf(one);
      if (moving === null) found.leave(one.key, whyUnreadable(one));
      else found.count(moving, isLeased(moving, from));
    }
  }
  if (found.leased > 0) throw inUse(`${found.leased} of its events are leased to one`);
  if (dryRun) return found.report();
  const moved = new MoveCounts();
  const mover = new Mover(from, to, environment, moved);
  const stopKeepingAlive = environment.keepAlive();
  try {
    for await (const page of pagesOf(from)) await mover.move(page);
    while ((await from.prune?.(LONG_AGO)) === true);
    await keepHandlers(from, to);
  } finally {
    stopKeepingAlive();
  }
  return moved.report();
}

/** Moves the names of the handlers, so that a receiver that starts on the new inbox with other handlers gets a notice. */
async function keepHandlers(from: RecordStore, to: RecordStore): Promise<void> {
  const [old = null, known = null] = [await from.readNote?.(HANDLERS), await to.readNote?.(HANDLERS)];
  if (old !== null && known === null) await to.writeNote?.(HANDLERS, old);
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
    const page: Scanned | undefined = await store.scan?.(cursor, RECORDS_PER_STEP);
    if (page === undefined) return;
    yield page.records.filter(({ key }) => !isCanary(key));
    cursor = page.next;
  } while (cursor !== null);
}

/** Null for a record that cannot be read. */
function movingOf({ key, version, record }: DueRecord): Moving | null {
  if (isUnreadable(record)) return null;
  return { key, version, record, index: indexOf(key, record) };
}

function whyUnreadable({ record }: DueRecord): "unreadable" | "key-missing" {
  return isUnreadable(record) && record.code === "ERR_SEAL_KEY_MISSING" ? "key-missing" : "unreadable";
}

function isLeased({ key, record }: Moving, store: RecordStore): boolean {
  return record.lease !== null && record.lease.until > store.now(key);
}

/** Counts the records that were found or moved. */
class MoveCounts {
  leased = 0;
  #records = 0;
  #thereBefore = 0;
  readonly #events = { waiting: 0, retrying: 0, running: 0, held: 0, finished: 0 };
  readonly #left: MoveReport["left"][number][] = [];

  count({ index }: Moving, isLeased: boolean): void {
    this.#records++;
    if (isLeased) this.leased++;
    for (const { state } of index.events) this.#events[state]++;
  }

  knownBefore(): void {
    this.#thereBefore++;
  }

  leave(key: string, why: WhyLeft): void {
    this.#left.push({ key, why });
  }

  report(): MoveReport {
    return {
      records: this.#records,
      events: { ...this.#events },
      thereBefore: this.#thereBefore,
      left: this.#left,
    };
  }
}

class Mover {
  readonly #from: RecordStore;
  readonly #to: RecordStore;
  readonly #environment: Environment;
  readonly #tally: MoveCounts;

  constructor(from: RecordStore, to: RecordStore, environment: Environment, tally: MoveCounts) {
    this.#from = from;
    this.#to = to;
    this.#environment = environment;
    this.#tally = tally;
  }

  async move(page: readonly DueRecord[]): Promise<void> {
    const wanted = new Map<string, Moving>();
    for (const one of page) {
      const moving = movingOf(one);
      if (moving === null) this.#tally.leave(one.key, whyUnreadable(one));
      else if (isLeased(moving, this.#from)) throw inUse("it has begun to run an event during the move");
      else wanted.set(one.key, moving);
    }
    const there = await this.#bring([...wanted.values()]);
    await this.#to.replicated?.(there.map(({ key, version }) => ({ key, version })));
    await this.#takeOut(there.flatMap(({ key }) => wanted.get(key) ?? []));
  }

  /**
   * Writes the records that the new store lacks, or of which it has an outdated copy, until a read finds them there.
   * Resolves to the versions in the new store.
   */
  async #bring(wanted: readonly Moving[]): Promise<readonly { key: string; version: string }[]> {
    const there: { key: string; version: string }[] = [];
    const written = new Set<string>();
    let missing = wanted;
    for (let attempt = 0; missing.length > 0; attempt++) {
      const found = await this.#to.read(missing.map(({ key }) => key));
      const replaced = new Map<string, Moving>();
      missing = missing.filter((moving, at) => {
        const { key, index } = moving;
        const current = found[at] ?? null;
        // A record that has expired by now is not found, and need not be.
        if (current === null) return (index.expiresAt ?? Infinity) > this.#to.now(key);
        const next = nextOf(moving, current, this.#to);
        if (next === "there") {
          if (!written.has(key)) this.#tally.knownBefore();
          there.push({ key, version: current.version });
          return false;
        }
        if (typeof next !== "string") {
          replaced.set(key, next);
          return true;
        }
        this.#tally.leave(key, next);
        return false;
      });
      if (missing.length === 0) break;
      for (const { key } of missing) written.add(key);
      await this.#swap(this.#to, missing, attempt, (moving) => {
        const { version: expected = null, index: before = null } = replaced.get(moving.key) ?? {};
        return { ...moving, expected, before };
      });
    }
    return there;
  }

  /** Empties records of the old store. If one was written since it was read, a receiver runs there. */
  async #takeOut(moved: readonly Moving[]): Promise<void> {
    let left = moved;
    for (let attempt = 0; left.length > 0; attempt++) {
      await this.#swap(this.#from, left, attempt, (moving) => ({
        ...emptied(moving),
        version: this.#environment.token(),
        expected: moving.version,
        before: moving.index,
      }));
      const found = await this.#from.read(left.map(({ key }) => key));
      const changed = left.filter(({ version }, at) => (found[at]?.version ?? version) !== version);
      for (const moving of left.filter((_, at) => (found[at] ?? null) === null)) {
        this.#tally.count(moving, false);
      }
      if (changed.length > 0) {
        const isUndone = await this.#undo(changed);
        throw inUse(
          `it has changed an event during the move${isUndone ? "" : ", and a receiver of the new inbox has it too"}`,
        );
      }
      left = left.filter((_, at) => (found[at] ?? null) !== null);
    }
  }

  /** Removes records from the new store if they have changed in the old one, so that they run in one store only. */
  async #undo(changed: readonly Moving[]): Promise<boolean> {
    const results = await this.#to.swap(
      inOrder(changed).map((moving) => ({
        ...emptied(moving),
        version: this.#environment.token(),
        expected: moving.version,
        before: moving.index,
        at: this.#to.now(moving.key),
        announce: false,
      })),
    );
    return results.every(({ kind }) => kind === "written");
  }

  async #swap(
    store: RecordStore,
    records: readonly Moving[],
    attempt: number,
    itemOf: (moving: Moving) => Omit<Swap, "at" | "announce">,
  ): Promise<void> {
    if (attempt > 0) await sleep(this.#environment, PAUSE_MS);
    const items = inOrder(records).map((moving) => {
      return { ...itemOf(moving), at: store.now(moving.key), announce: false };
    });
    const results = await store.swap(items);
    const failed = results.filter(({ kind }) => kind !== "written");
    const refused = failed.filter(({ kind }) => kind === "refused");
    if (refused.length === 0 && (failed.length === 0 || attempt + 1 < ATTEMPTS)) return;
    const causeOf = (result: SwapResult): readonly unknown[] => ("cause" in result ? [result.cause] : []);
    const [cause] = [...refused, ...failed].flatMap(causeOf);
    throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "An inbox did not take a record that was moved.", {
      fix: "Nothing is lost: each record is in the old inbox or the new one. Look at the cause, and move again.",
      cause,
    });
  }
}

/** Decides about a record of which the new store has a copy already. Returns the copy if it must be replaced. */
function nextOf(moving: Moving, current: Versioned, to: RecordStore): "there" | WhyLeft | Moving {
  const copy = movingOf({ key: moving.key, ...current });
  if (copy === null) return "unreadable-there";
  if (copy.version === moving.version) return "there";
  const isOutdated = knowsAllOf(moving.record, copy.record);
  const isRunning = isLeased(copy, to);
  if (isOutdated && !isRunning) return copy;
  if (knowsAllOf(copy.record, moving.record)) return "there";
  return isOutdated ? "running" : "conflict";
}

/** The record in an ended and expired form. Every store treats such a record as absent. */
function emptied({ key, record }: Moving): Pick<Swap, "key" | "record" | "index"> {
  const nothing = { lease: null, slots: {}, statusSlot: null };
  return {
    key,
    record: { ...record, ...nothing, isClosed: true, expiresAt: LONG_AGO },
    index: {
      dueAt: null,
      delayWhenWrittenMs: 0,
      isLeased: false,
      lane: "usual",
      expiresAt: LONG_AGO,
      events: [],
    },
  };
}

function inOrder(records: readonly Moving[]): readonly Moving[] {
  return records.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function inUse(why: string): PayhooksError {
  return new PayhooksError("ERR_INBOX_IN_USE", `A receiver runs on the inbox that is to be moved: ${why}.`, {
    fix: "Stop every process that uses it, and move again. If a process has died, its lease ends within leaseMs (30 s).",
  });
}
