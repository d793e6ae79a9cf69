import type { Clock } from "../clock.ts";
import { type Environment, environmentOf } from "../environment.ts";
import { PayhooksError } from "../errors.ts";
import type { EventFilter, HeldReason } from "../inbox/inbox.ts";
import { decodeRecord, encodeRecord } from "../inbox/record/codec.ts";
import type {
  Counts,
  DueRecords,
  ListCursor,
  Listed,
  RecordStore,
  Swap,
  SwapResult,
  Versioned,
} from "../inbox/store.ts";
import { openDatabase, type SqliteDatabase, type SqliteHandle } from "./driver.ts";
import { isBusy, isDataRefused, unavailable } from "./failure.ts";
import { listEvents } from "./listing.ts";
import { prepareSchema } from "./schema.ts";
import { type RecordRow, Tables } from "./tables.ts";
import { UnclearCommit } from "./transaction.ts";
import { whenFree } from "./when-free.ts";
import { Writer } from "./writer.ts";

/** How long the start waits for other processes that start on the same file. */
const START_LIMIT_MS = 5_000;
/** A write that was computed longer ago is to be computed again. */
const MAX_AGE_MS = 5_000;
/** Expired records that go in one step, so that no delivery waits for a long clean-up. */
const PRUNED_AT_ONCE = 100;
/** Room that an event takes, with what belongs to it. */
const PROBE_BYTES = 8_192;

/** Options of {@link sqliteStore}. */
export interface SqliteStoreOptions {
  /** For tests: a clock, or everything that is taken from outside. */
  readonly clock?: Clock | Environment | undefined;
}

/**
 * Where {@link sqliteInbox} keeps its records, for `createInbox`.
 *
 * @experimental The interface of stores may still change in a minor release.
 * @throws PayhooksError at `open()`: `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_SQLITE_UNSUITABLE`,
 * `ERR_INBOX_UNAVAILABLE` while another process holds the file.
 */
export function sqliteStore(
  file: string | SqliteHandle | undefined,
  { clock }: SqliteStoreOptions = {},
): RecordStore {
  return new SqliteStore(file, environmentOf(clock));
}

/** A file that is open. */
interface Opened {
  readonly database: SqliteDatabase;
  readonly tables: Tables;
  readonly writer: Writer;
  readonly identity: string;
}

/** Records in a SQLite file. All writes of a call are one transaction, which is on disk when they are answered. */
class SqliteStore implements RecordStore {
  readonly durability = "host";
  readonly #file: string | SqliteHandle | undefined;
  readonly #environment: Environment;
  #opening: Promise<void> | null = null;
  #openedFile: Opened | null = null;

  constructor(file: string | SqliteHandle | undefined, environment: Environment) {
    this.#file = file;
    this.#environment = environment;
  }

  /** After a failure it can be called again. */
  open(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    const file = this.#file;
    if (file === undefined || file === "") {
      throw new PayhooksError("ERR_OPTION_MISSING", "sqliteInbox was given no file.", {
        fix: 'Name one that outlives the process, such as sqliteInbox("/var/lib/app/payhooks.db").',
      });
    }
    const database = typeof file === "string" ? await openDatabase(file) : (file as SqliteDatabase);
    try {
      const identity = await whenFree(this.#environment, START_LIMIT_MS, () =>
        prepareSchema(database, this.#environment.token()),
      );
      const writer = new Writer(database, this.#environment);
      this.#openedFile = { database, tables: new Tables(database), writer, identity };
    } catch (error) {
      // A handle of the caller's own stays open, so that this can be tried again.
      if (typeof file === "string") database.close();
      if (!isBusy(error)) throw error;
      throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "Another process holds the file of sqliteInbox.", {
        fix: "It is tried again with the next delivery. Is a program other than yours in the middle of a transaction?",
        cause: error,
      });
    }
  }

  get #opened(): Opened {
    if (this.#openedFile !== null) return this.#openedFile;
    throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "The file of sqliteInbox is not open.", {
      fix: "Has the inbox been closed? Otherwise see what its start was refused for.",
    });
  }

  get identity(): string {
    return this.#opened.identity;
  }

  now(): number {
    return this.#environment.now();
  }

  read(keys: readonly string[]): readonly (Versioned | null)[] {
    const { tables } = this.#opened;
    const now = this.now();
    return keys.map((key) => versionedOf(unexpired(tables.find(key), now)));
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    if (items.length === 0) return [];
    try {
      return await this.#write((tables) => items.map((item) => this.#swapOne(tables, item)));
    } catch (error) {
      if (isDataRefused(error) && items.length > 1) {
        // One of them is at fault: by itself it fails nobody else.
        const alone: SwapResult[] = [];
        for (const item of items) alone.push(...(await this.swap([item])));
        return alone;
      }
      return items.map(() => ({ kind: fateOf(error), cause: error }));
    }
  }

  #swapOne(tables: Tables, item: Swap): SwapResult {
    const now = this.now();
    const row = tables.find(item.key);
    const current = unexpired(row, now);
    const isTimely = item.at <= now && item.at >= now - MAX_AGE_MS;
    if (!isTimely || (current?.version ?? null) !== item.expected) {
      return { kind: "conflict", current: versionedOf(current) };
    }
    const text = encodeRecord(item.record);
    if (current !== null) tables.update(current.place, item, text);
    else {
      if (row !== null) tables.remove(row.place);
      tables.insert(item, text);
    }
    return { kind: "written" };
  }

  async takeDue(limit: number, hideMs: number): Promise<DueRecords> {
    const { tables } = this.#opened;
    const rows = this.#isDue(tables, limit) ? await this.#take(limit, hideMs) : [];
    const now = this.now();
    return {
      records: rows.map((row) => ({ key: row.key, ...decoded(row) })),
      left: tables.countDue(now),
      nextDueAt: tables.nextDueAt(now),
    };
  }

  /** Without the lock, since most looks find nothing. */
  #isDue(tables: Tables, limit: number): boolean {
    return limit > 0 && tables.due(this.now(), 1).length > 0;
  }

  #take(limit: number, hideMs: number): Promise<readonly RecordRow[]> {
    return this.#write((tables) => {
      const now = this.now();
      const rows = tables.due(now, limit);
      for (const { place } of rows) tables.hide(place, now + hideMs, hideMs);
      return rows;
    }).catch(rethrow);
  }

  async list(filter: EventFilter, cursor: ListCursor | null, limit: number): Promise<Listed> {
    await this.#nextTurn();
    return listEvents(this.#opened.database, filter, cursor, limit, this.now());
  }

  counts(): Counts {
    const { tables } = this.#opened;
    const counts = { waiting: 0, retrying: 0, running: 0, held: 0 };
    const heldBy: Partial<Record<HeldReason, number>> = {};
    for (const { state, reason, n } of tables.counts()) {
      counts[state] += n;
      if (reason !== null) heldBy[reason] = (heldBy[reason] ?? 0) + n;
    }
    return { ...counts, heldBy, oldestDueAt: tables.oldestDueAt(this.now()) };
  }

  async prune(): Promise<boolean> {
    await this.#nextTurn();
    const expired = (): readonly number[] => this.#opened.tables.expired(this.now(), PRUNED_AT_ONCE);
    if (expired().length === 0) return false;
    const pruned = await this.#write((tables) => {
      const places = expired();
      for (const place of places) tables.remove(place);
      return places.length;
    }).catch(rethrow);
    return pruned === PRUNED_AT_ONCE;
  }

  /** A commit of what takes room as an event does: what is only rolled back never meets the disk. */
  async probe(): Promise<void> {
    const { database } = this.#opened;
    await this.#write(() => {
      database.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', zeroblob(${PROBE_BYTES}))`);
      database.exec("DELETE FROM meta WHERE name = 'probe'");
    }).catch(rethrow);
  }

  /** SQLite answers at once: without a turn between them, pages or steps that follow one another let nobody else in. */
  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#environment.soon(resolve));
  }

  #write<T>(work: (tables: Tables) => T): Promise<T> {
    const { tables, writer } = this.#opened;
    return writer.write(() => work(tables));
  }

  async close(): Promise<void> {
    await this.#opening?.catch(() => {});
    const opened = this.#openedFile;
    if (opened === null) return;
    this.#openedFile = null;
    try {
      // Some drivers close when they are collected: from here on the file has everything, and can be copied alone.
      opened.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // Another process still uses the log, and will do it.
    }
    opened.database.close();
  }
}

function unexpired(row: RecordRow | null, now: number): RecordRow | null {
  return row !== null && row.expires_at !== null && row.expires_at <= now ? null : row;
}

function versionedOf(row: RecordRow | null): Versioned | null {
  return row === null ? null : decoded(row);
}

function decoded({ version, text }: RecordRow): Versioned {
  return { version, record: decodeRecord(text) };
}

/** What became of writes whose transaction failed. */
function fateOf(error: unknown): "not-written" | "refused" | "unknown" {
  if (error instanceof UnclearCommit) return "unknown";
  return isDataRefused(error) ? "refused" : "not-written";
}

function rethrow(error: unknown): never {
  throw unavailable(error);
}
