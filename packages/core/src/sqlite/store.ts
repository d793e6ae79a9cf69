import { existsSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import type { EventFilter } from "../inbox/contract/event-query.ts";
import type {
  Counts,
  DueRecords,
  KnownRecord,
  ListCursor,
  Listed,
  ListOrder,
  RecordStore,
  Scanned,
  Swap,
  SwapResult,
  Versioned,
} from "../inbox/contract/store.ts";
import type { Lanes } from "../inbox/record/lane.ts";
import type { Loss } from "../notices/notice.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { type Clock, Stopwatch } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { openDatabase } from "./driver.ts";
import { isBusy, isDataRefused, isTableMissing, unavailable } from "./failure.ts";
import { FileCheck, FileGone, FileOverwritten, LogGone } from "./file-check.ts";
import { gone, isGone } from "./gone.ts";
import type { SqliteDatabase, SqliteHandle } from "./handle.ts";
import { listEvents } from "./listing.ts";
import {
  countsOf,
  dueRecordsOf,
  hideDue,
  isAnyDue,
  isAnyExpired,
  pruneSome,
  readAll,
  scanFrom,
  swapOne,
} from "./operations.ts";
import { closeOrPark, staysOpen } from "./parked.ts";
import {
  checkTables,
  datasetIdOf,
  noteVersion,
  prepareSchema,
  readNote,
  unused,
  writeNote,
} from "./schema.ts";
import { type RecordRow, Tables } from "./tables.ts";
import { UnclearCommit } from "./transaction.ts";
import { whenFree } from "./when-free.ts";
import { Writer } from "./writer.ts";

/** How long the start waits for other processes that start on the same file. */
const START_LIMIT_MS = 5_000;
/** How long to wait before a missing file is made again. By then every process has closed the old file and its companions. */
const REOPEN_AFTER_MS = 5_000;

/** Options of {@link sqliteStore}. */
export interface SqliteStoreOptions {
  /** For tests: a clock, or everything that the store takes from outside. */
  readonly clock?: Clock | Environment | undefined;
  /**
   * Opens only an inbox that a receiver has used. Otherwise `open()` rejects with `ERR_INBOX_UNUSED`, and nothing is created.
   * For tools that look into an inbox. Default false.
   */
  readonly existing?: boolean | undefined;
}

/**
 * The store of {@link sqliteInbox}, for `createInbox`.
 *
 * @experimental The interface of stores may still change in a minor release.
 * @throws PayhooksError at `open()`: `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_SQLITE_UNSUITABLE`, `ERR_INBOX_UNAVAILABLE`
 * while another process holds the file; with `existing`, `ERR_INBOX_UNUSED`.
 */
export function sqliteStore(
  file: string | SqliteHandle | undefined,
  { clock, existing = false }: SqliteStoreOptions = {},
): RecordStore {
  return new SqliteStore(file, existing, environmentOf(clock));
}

/** A file that is open. */
interface Opened {
  readonly database: SqliteDatabase;
  readonly tables: Tables;
  readonly writer: Writer;
  readonly fileCheck: FileCheck;
  readonly datasetId: string;
}

/** Keeps records in a SQLite file. All writes of one call are one transaction, which is on disk before the call resolves. */
class SqliteStore implements RecordStore {
  readonly durability = "host";
  readonly #file: string | SqliteHandle | undefined;
  readonly #existing: boolean;
  readonly #environment: Environment;
  #opening: Promise<void> | null = null;
  #openedFile: Opened | null = null;
  /**
   * Since when the file or its log is missing; null while both exist. If the loss is for good, this process cannot open
   * the file again.
   */
  #gone: {
    readonly error: FileGone | LogGone;
    readonly since: Stopwatch;
    readonly isForGood: boolean;
  } | null = null;
  /** How events were lost; null again once that was reported. */
  #unreportedLoss: Loss | null = null;
  #isClosed = false;

  constructor(file: string | SqliteHandle | undefined, existing: boolean, environment: Environment) {
    this.#file = typeof file === "string" ? fixed(file) : file;
    this.#existing = existing;
    this.#environment = environment;
  }

  /** After a failure, it can be called again. */
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
    const isPath = typeof file === "string";
    if (this.#gone !== null) {
      const { error, since, isForGood } = this.#gone;
      // If the caller opened the handle, the caller has to handle the loss of its file.
      if (!isPath || isForGood || since.elapsedMs < REOPEN_AFTER_MS) throw gone(error);
    }
    if (this.#existing && isPath && !existsSync(file)) throw unused("There is no such file");
    // Processes that still have the old file open share memory through this file.
    if (this.#gone !== null && isPath && !existsSync(file)) rmSync(`${file}-shm`, { force: true });
    const database = isPath ? await openDatabase(file) : (file as SqliteDatabase);
    try {
      const newId = this.#existing ? null : this.#environment.token();
      const datasetId = await whenFree(this.#environment, START_LIMIT_MS, () =>
        prepareSchema(database, newId),
      );
      const fileCheck = new FileCheck(database, this.#environment, isPath);
      fileCheck.run();
      const writer = new Writer(database, fileCheck, this.#environment);
      this.#openedFile = { database, tables: new Tables(database), writer, fileCheck, datasetId };
      this.#gone = null;
    } catch (error) {
      // A handle of the caller's stays open, so that it can be tried again. An own handle that could not be used, for example
      // because its file is read-only, would be of no use to the next user of the file, so it is closed and not parked.
      if (isPath && isBusy(error)) closeOrPark(database);
      else if (isPath) database.close();
      if (isGone(error)) throw gone(error);
      if (!isBusy(error)) throw error;
      throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "Another process holds the file of sqliteInbox.", {
        fix: "The next delivery tries again. Check whether another program is in the middle of a transaction.",
        cause: error,
      });
    }
  }

  get #opened(): Opened {
    if (this.#openedFile !== null) return this.#openedFile;
    if (this.#gone !== null) throw gone(this.#gone.error);
    throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "The file of sqliteInbox is not open.", {
      fix: "If the inbox was not closed, look at the error of its start.",
    });
  }

  get datasetId(): string {
    return this.#opened.datasetId;
  }

  async findLoss(known: readonly KnownRecord[]): Promise<Loss | null> {
    const opened = this.#openedFile;
    if (opened !== null) this.#unreportedLoss ??= this.#lossOf(opened, known);
    const loss = this.#unreportedLoss;
    this.#unreportedLoss = null;
    if (this.#openedFile === null && !this.#isClosed) void this.open().catch(() => {});
    return loss;
  }

  #lossOf(opened: Opened, known: readonly KnownRecord[]): Loss | null {
    try {
      opened.fileCheck.noteOthers();
      if (opened.fileCheck.isOverwritten) throw new FileOverwritten("The file was overwritten.");
      opened.fileCheck.run();
    } catch (error) {
      this.#letGo(opened, error);
      return this.#unreportedLoss;
    }
    if (opened.fileCheck.isLogDamaged) {
      this.#letGo(opened, new LogGone("The log was cut or overwritten."), true);
      return this.#unreportedLoss;
    }
    if (opened.fileCheck.takeLogRemoved()) return "log-removed";
    try {
      checkTables(opened.database);
      const datasetId = datasetIdOf(opened.database);
      if (opened.datasetId !== datasetId) {
        this.#openedFile = { ...opened, datasetId };
        return "replaced";
      }
      return known.every((one) => opened.tables.has(one)) ? null : "missing";
    } catch (error) {
      if (!isTableMissing(error)) throw error;
      this.#openedFile = { ...opened, datasetId: prepareSchema(opened.database, this.#environment.token()) };
      return "replaced";
    }
  }

  /**
   * Closes a file if other processes would not find the data that is written there. If this process can close it, it is
   * opened again after a while. A damaged log stays open: closing it would write it into the file.
   */
  #letGo(opened: Opened, error: unknown, isDamaged = false): void {
    if (!isGone(error)) throw error;
    if (this.#openedFile !== opened) return;
    this.#openedFile = null;
    this.#opening = null;
    const isFile = error instanceof FileGone;
    this.#gone = {
      error,
      since: new Stopwatch(this.#environment),
      isForGood: isDamaged || (!isFile && staysOpen(opened.database)),
    };
    this.#unreportedLoss = isFile ? "replaced" : "log-removed";
    if (!isDamaged) opened.database.close();
  }

  now(): number {
    return this.#environment.now();
  }

  read(keys: readonly string[]): readonly (Versioned | null)[] {
    return readAll(this.#opened.tables, keys, this.now());
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    if (items.length === 0) return [];
    try {
      return await this.#write((tables) => items.map((item) => swapOne(tables, item, this.now())));
    } catch (error) {
      if (isDataRefused(error) && items.length > 1) {
        // One of the writes is at fault. Each is repeated by itself, so that it does not fail the others.
        const alone: SwapResult[] = [];
        for (const item of items) alone.push(...(await this.swap([item])));
        return alone;
      }
      return items.map(() => ({ kind: fateOf(error), cause: error }));
    }
  }

  async takeDue(limit: Lanes, hideMs: number): Promise<DueRecords> {
    const { tables } = this.#opened;
    // Polls without the lock at first, because most polls find nothing.
    const taken = isAnyDue(tables, limit, this.now()) ? await this.#take(limit, hideMs) : [];
    return dueRecordsOf(tables, taken, this.now());
  }

  #take(limit: Lanes, hideMs: number): Promise<readonly RecordRow[]> {
    return this.#write((tables) => hideDue(tables, limit, hideMs, this.now())).catch(rethrow);
  }

  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<Listed> {
    await this.#nextTurn();
    return listEvents(this.#opened.database, filter, cursor, limit, first, this.now());
  }

  async scan(cursor: string | null, limit: number): Promise<Scanned> {
    await this.#nextTurn();
    return scanFrom(this.#opened.tables, cursor, limit, this.now());
  }

  counts(): Counts {
    return countsOf(this.#opened.tables, this.now());
  }

  async prune(before: number): Promise<boolean> {
    await this.#nextTurn();
    if (!isAnyExpired(this.#opened.tables, before)) return false;
    return this.#write((tables) => pruneSome(tables, before)).catch(rethrow);
  }

  async readNote(name: string): Promise<string | null> {
    return readNote(this.#opened.database, name);
  }

  async writeNote(name: string, text: string): Promise<void> {
    const { database } = this.#opened;
    await this.#write(() => writeNote(database, name, text)).catch(rethrow);
  }

  /** SQLite answers synchronously. Without a pause between them, a sequence of pages or steps would block everything else. */
  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#environment.nextTurn(resolve));
  }

  async #write<T>(work: (tables: Tables) => T): Promise<T> {
    const opened = this.#opened;
    try {
      return await opened.writer.write(() => work(opened.tables));
    } catch (error) {
      if (!isGone(error)) throw error;
      this.#letGo(opened, error);
      throw gone(error);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening?.catch(() => {});
    const opened = this.#openedFile;
    if (opened === null) return;
    this.#openedFile = null;
    try {
      // Some drivers close the file only when they are garbage-collected. After this statement, the file is complete without
      // its log and can be copied by itself. Other processes see a commit, and so the reason why the file is written.
      noteVersion(opened.database);
      opened.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // Another process still uses the log, and will do this when it closes.
    }
    closeOrPark(opened.database);
  }
}

/** The same file, whatever folder the process is in when it opens it again. URIs and `:memory:` are names of SQLite. */
function fixed(file: string): string {
  return file === "" || file === ":memory:" || file.startsWith("file:") ? file : resolve(file);
}

/** The fate of writes whose transaction failed. */
function fateOf(error: unknown): "not-written" | "refused" | "unknown" {
  if (error instanceof UnclearCommit) return "unknown";
  return isDataRefused(error) ? "refused" : "not-written";
}

function rethrow(error: unknown): never {
  throw error instanceof PayhooksError ? error : unavailable(error);
}
