/**
 * Moves what an inbox has into another one. A record is written to the new store, read back from there, and only then
 * taken out of the old one: at every moment it is in one of the two, and a move that was interrupted goes on when it is
 * made again. Each step is a compare-and-swap, so that a receiver that still runs on the old store is noticed.
 */
import { PayhooksError } from "../protocol/errors.ts";
import { sleep } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { isUnreadable } from "./record/codec.ts";
import { type EventState, indexOf, type RecordIndex } from "./record/index-of.ts";
import type { IdempotencyRecord } from "./record/record.ts";
import type { RecordStore, Scanned, ScannedRecord, Swap, SwapResult, Versioned } from "./store.ts";

/** Records that travel together. */
const TOGETHER = 100;
/** How often a store is asked again that does not take a write. */
const ATTEMPTS = 5;
const PAUSE_MS = 300;

/** Options of {@link moveRecords}. */
export interface MoveOptions {
  /** Only looks: what would be moved, and whether another process is in the way. Default false. */
  readonly dryRun?: boolean | undefined;
  /** For tests: time and randomness. */
  readonly environment?: Environment | undefined;
}

/** What a move has done; with `dryRun`, what it would do. */
export interface MoveReport {
  /** Records that have left the old store, references of `oneSuccessPerReference` included. */
  readonly records: number;
  /** Their events, by state. */
  readonly events: Readonly<Record<EventState, number>>;
  /** Of the records, those that the new store had from an earlier move. */
  readonly thereBefore: number;
  /** Records that stay in the old store. */
  readonly left: readonly {
    readonly key: string;
    /**
     * `unreadable`: a newer Payhooks wrote it, or it is damaged. `conflict`: the new store knows other things about the
     * same transaction, since its receiver took a delivery of it.
     */
    readonly why: "unreadable" | "conflict";
  }[];
}

/** A record on its way. */
interface Moving {
  readonly key: string;
  readonly version: string;
  readonly record: IdempotencyRecord;
  readonly index: RecordIndex;
}

/**
 * Moves every record that has not expired from one store to another: what is unfinished, held, or finished and there to
 * recognise copies. Both stores are open. Stop every receiver of the old store first. May be called again after it failed.
 *
 * @experimental The interface of stores may still change in a minor release.
 * @throws PayhooksError `ERR_INBOX_IN_USE` when a receiver runs on the old store, `ERR_INBOX_UNAVAILABLE` when a store does
 * not take what it is given, `ERR_OPTION_INVALID` for one and the same store or one that is in memory.
 */
export async function moveRecords(
  from: RecordStore,
  to: RecordStore,
  { dryRun = false, environment = environmentOf() }: MoveOptions = {},
): Promise<MoveReport> {
  checkStores(from, to);
  const found = new Tally();
  for await (const page of pagesOf(from)) {
    for (const one of page) {
      const moving = movingOf(one);
      if (moving === null) found.leave(one.key, "unreadable");
      else found.count(moving, isLeased(moving, from));
    }
  }
  if (found.leased > 0) throw inUse(`${found.leased} of its events are leased to one`);
  if (dryRun) return found.report();
  const moved = new Tally();
  const mover = new Mover(from, to, environment, moved);
  const release = environment.hold();
  try {
    for await (const page of pagesOf(from)) await mover.move(page);
    while ((await from.prune?.()) === true);
  } finally {
    release();
  }
  return moved.report();
}

function checkStores(from: RecordStore, to: RecordStore): void {
  if (from.scan === undefined || to.endsWithProcess === true) {
    throw new PayhooksError("ERR_OPTION_INVALID", "An inbox in memory cannot be moved from or to.", {
      fix: "It ends with its process: stop it gracefully, so that its events run to their end.",
    });
  }
  if (from.identity !== to.identity) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "Both addresses lead to the same inbox.", {
    fix: "Name another file, server, schema or prefix to move to.",
  });
}

async function* pagesOf(store: RecordStore): AsyncIterable<readonly ScannedRecord[]> {
  let cursor: string | null = null;
  do {
    const page: Scanned | undefined = await store.scan?.(cursor, TOGETHER);
    if (page === undefined) return;
    yield page.records;
    cursor = page.next;
  } while (cursor !== null);
}

/** Null for a record that cannot be read. */
function movingOf({ key, version, record, references }: ScannedRecord): Moving | null {
  if (isUnreadable(record)) return null;
  const index = indexOf(key, record);
  const events = index.events.map((labels) => ({
    ...labels,
    referenceId: labels.referenceId ?? references[labels.eventId] ?? null,
  }));
  return { key, version, record, index: { ...index, events } };
}

function isLeased({ key, record }: Moving, store: RecordStore): boolean {
  return record.lease !== null && record.lease.until > store.now(key);
}

/** What was found, or moved. */
class Tally {
  leased = 0;
  #records = 0;
  #thereBefore = 0;
  readonly #events = { waiting: 0, retrying: 0, running: 0, held: 0, done: 0 };
  readonly #left: MoveReport["left"][number][] = [];

  count({ index }: Moving, isLeased: boolean): void {
    this.#records++;
    if (isLeased) this.leased++;
    for (const { state } of index.events) this.#events[state]++;
  }

  knownBefore(): void {
    this.#thereBefore++;
  }

  leave(key: string, why: "unreadable" | "conflict"): void {
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
  readonly #tally: Tally;

  constructor(from: RecordStore, to: RecordStore, environment: Environment, tally: Tally) {
    this.#from = from;
    this.#to = to;
    this.#environment = environment;
    this.#tally = tally;
  }

  async move(page: readonly ScannedRecord[]): Promise<void> {
    const wanted = new Map<string, Moving>();
    for (const one of page) {
      const moving = movingOf(one);
      if (moving === null) this.#tally.leave(one.key, "unreadable");
      else wanted.set(one.key, moving);
    }
    const there = await this.#bring([...wanted.values()]);
    await this.#to.settled?.(there.map(({ key, version }) => ({ key, version })));
    await this.#takeOut(there.flatMap(({ key }) => wanted.get(key) ?? []));
  }

  /** Writes what the new store does not have, until a read shows that it has it. Answers what it has of these. */
  async #bring(wanted: readonly Moving[]): Promise<readonly { key: string; version: string }[]> {
    const there: { key: string; version: string }[] = [];
    const written = new Set<string>();
    let missing = wanted;
    for (let attempt = 0; missing.length > 0; attempt++) {
      const found = await this.#to.read(missing.map(({ key }) => key));
      const absent: Moving[] = [];
      missing.forEach((moving, at) => {
        const current = found[at] ?? null;
        const { key, version } = moving;
        if (current === null) absent.push(moving);
        else if (current.version !== version && !knows(current, moving)) this.#tally.leave(key, "conflict");
        else {
          if (!written.has(key)) this.#tally.knownBefore();
          there.push({ key, version: current.version });
        }
      });
      // One whose time is over by now is nowhere to be found, and is not missed.
      missing = absent.filter(({ key, index }) => (index.expiresAt ?? Infinity) > this.#to.now(key));
      if (missing.length === 0) break;
      for (const { key } of missing) written.add(key);
      await this.#swap(this.#to, missing, attempt, (moving) => ({ ...moving, expected: null, before: null }));
    }
    return there;
  }

  /** Empties records of the old store. One that was written since it was read shows that a receiver runs there. */
  async #takeOut(moved: readonly Moving[]): Promise<void> {
    let left = moved;
    for (let attempt = 0; left.length > 0; attempt++) {
      await this.#swap(this.#from, left, attempt, (moving) => ({
        ...emptied(moving, this.#from.now(moving.key)),
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
          `it has changed an event while that was being moved${isUndone ? "" : ", and a receiver of the new inbox has it too"}`,
        );
      }
      left = left.filter((_, at) => (found[at] ?? null) !== null);
    }
  }

  /** What has run on in the old store is not to run in the new one. */
  async #undo(changed: readonly Moving[]): Promise<boolean> {
    const results = await this.#to.swap(
      inOrder(changed).map((moving) => ({
        ...emptied(moving, this.#to.now(moving.key)),
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
      fix: "What was moved is moved, and nothing is lost. Look at the cause, and move again.",
      cause,
    });
  }
}

/** A record that has ended and expired: for every store it is none. */
function emptied({ key, record }: Moving, now: number): Pick<Swap, "key" | "record" | "index"> {
  const expiresAt = Math.floor(now) - 1;
  return {
    key,
    record: { ...record, lease: null, slots: {}, status: null, statusSlot: null, expiresAt },
    index: { dueAt: null, dueInMs: 0, expiresAt, events: [] },
  };
}

/** Whether the new store knows at least as much: the same events, none of them less far. */
function knows({ record }: Versioned, { key, record: old, index }: Moving): boolean {
  if (isUnreadable(record)) return false;
  if (index.events.length === 0) return record.id === old.id;
  const known = new Map(indexOf(key, record).events.map((labels) => [labels.eventId, labels]));
  return index.events.every(({ eventId, acceptedAt, state }) => {
    const labels = known.get(eventId);
    return labels?.acceptedAt === acceptedAt && (labels.state === "done" || state !== "done");
  });
}

function inOrder(records: readonly Moving[]): readonly Moving[] {
  return records.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function inUse(why: string): PayhooksError {
  return new PayhooksError("ERR_INBOX_IN_USE", `A receiver runs on the inbox that is to be moved: ${why}.`, {
    fix: "Stop every process that uses it, and move again. The lease of a process that died ends within leaseMs (30 s).",
  });
}
