import { existsSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import type { EventFilter } from "../inbox/contract/event-query.ts";
import type {
  DueRecords,
  KnownRecord,
  ListCursor,
  ListOrder,
  ListPage,
  RecordStore,
  ScanPage,
  StoreCounts,
  Swap,
  SwapResult,
  VersionedRecord,
} from "../inbox/contract/store.ts";
import type { Lanes } from "../inbox/record/lane.ts";
import type { Loss } from "../notices/notice.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { type Clock, Stopwatch } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import { openDatabase } from "./driver.ts";
import { commitFailedError, isBusy, isDataRefused, isTableMissing } from "./failure.ts";
import { FileCheck, FileGoneError, FileOverwrittenError, LogGoneError } from "./file-check.ts";
import { fileLostError, isFileLostError } from "./file-lost.ts";
import type { SqliteDatabase, SqliteHandle } from "./handle.ts";
import { closeOrPark, keepsFileOpen } from "./handle-cache.ts";
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
import { retryWhileLocked } from "./retry-while-locked.ts";
import {
  checkTables,
  datasetIdOf,
  prepareSchema,
  readNote,
  unusedInboxError,
  writeNote,
  writeVersion,
} from "./schema.ts";
import { type RecordRow, Tables } from "./tables.ts";
import { UnclearCommitError } from "./transaction.ts";
import { Writer } from "./writer.ts";

/** How long the start waits for other processes that start on the same file. */
const START_TIMEOUT_MS = 5_000;
/** How long to wait before a missing file is made again. By then every process has closed the old file and its companions. */
const REOPEN_DELAY_MS = 5_000;

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
interface OpenFile {
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
  readonly #mustExist: boolean;
  readonly #environment: Environment;
  #opening: Promise<void> | null = null;
  #openFileOrNull: OpenFile | null = null;
  /**
   * Since when the file or its log is missing; null while both exist. If the loss is for good, this process cannot open
   * the file again.
   */
  #fileLoss: {
    readonly error: FileGoneError | LogGoneError;
    readonly since: Stopwatch;
    readonly isForGood: boolean;
  } | null = null;
  /** How events were lost; null again once that was reported. */
  #unreportedLoss: Loss | null = null;
  #isClosed = false;

  constructor(file: string | SqliteHandle | undefined, mustExist: boolean, environment: Environment) {
    this.#file = typeof file === "string" ? toAbsolutePath(file) : file;
    this.#mustExist = mustExist;
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
    if (this.#fileLoss !== null) {
      const { error, since, isForGood } = this.#fileLoss;
      // If the caller opened the handle, the caller has to handle the loss of its file.
      if (!isPath || isForGood || since.elapsedMs < REOPEN_DELAY_MS) throw fileLostError(error);
    }
    if (this.#mustExist && isPath && !existsSync(file)) throw unusedInboxError("There is no such file");
    // Processes that still have the old file open share memory through this file.
    if (this.#fileLoss !== null && isPath && !existsSync(file)) rmSync(`${file}-shm`, { force: true });
    const database = isPath ? await openDatabase(file) : (file as SqliteDatabase);
    try {
      const newId = this.#mustExist ? null : this.#environment.token();
      const datasetId = await retryWhileLocked(this.#environment, START_TIMEOUT_MS, () =>
        prepareSchema(database, newId),
      );
      const fileCheck = new FileCheck(database, this.#environment, isPath);
      fileCheck.run();
      const writer = new Writer(database, fileCheck, this.#environment);
      this.#openFileOrNull = { database, tables: new Tables(database), writer, fileCheck, datasetId };
      this.#fileLoss = null;
    } catch (error) {
      // A handle of the caller's stays open, so that it can be tried again. An own handle that could not be used, for example
      // because its file is read-only, would be of no use to the next user of the file, so it is closed and not parked.
      if (isPath && isBusy(error)) closeOrPark(database);
      else if (isPath) database.close();
      if (isFileLostError(error)) throw fileLostError(error);
      if (!isBusy(error)) throw error;
      throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "Another process holds the file of sqliteInbox.", {
        fix: "The next delivery tries again. Check whether another program is in the middle of a transaction.",
        cause: error,
      });
    }
  }

  get #openFile(): OpenFile {
    if (this.#openFileOrNull !== null) return this.#openFileOrNull;
    if (this.#fileLoss !== null) throw fileLostError(this.#fileLoss.error);
    throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "The file of sqliteInbox is not open.", {
      fix: "If the inbox was not closed, look at the error of its start.",
    });
  }

  get datasetId(): string {
    return this.#openFile.datasetId;
  }

  async findLoss(knownRecords: readonly KnownRecord[]): Promise<Loss | null> {
    const openFile = this.#openFileOrNull;
    if (openFile !== null) this.#unreportedLoss ??= this.#lossOf(openFile, knownRecords);
    const loss = this.#unreportedLoss;
    this.#unreportedLoss = null;
    if (this.#openFileOrNull === null && !this.#isClosed) void this.open().catch(() => {});
    return loss;
  }

  #lossOf(openFile: OpenFile, knownRecords: readonly KnownRecord[]): Loss | null {
    try {
      openFile.fileCheck.noteOtherCommits();
      if (openFile.fileCheck.isOverwritten) throw new FileOverwrittenError("The file was overwritten.");
      openFile.fileCheck.run();
    } catch (error) {
      this.#release(openFile, error);
      return this.#unreportedLoss;
    }
    if (openFile.fileCheck.isLogDamaged) {
      this.#release(openFile, new LogGoneError("The log was cut or overwritten."), true);
      return this.#unreportedLoss;
    }
    if (openFile.fileCheck.takeLogRemoved()) return "log-removed";
    try {
      checkTables(openFile.database);
      const datasetId = datasetIdOf(openFile.database);
      if (openFile.datasetId !== datasetId) {
        this.#openFileOrNull = { ...openFile, datasetId };
        return "replaced";
      }
      return knownRecords.every((record) => openFile.tables.has(record)) ? null : "missing";
    } catch (error) {
      if (!isTableMissing(error)) throw error;
      this.#openFileOrNull = {
        ...openFile,
        datasetId: prepareSchema(openFile.database, this.#environment.token()),
      };
      return "replaced";
    }
  }

  /**
   * Closes a file if other processes would not find the data that is written there. If this process can close it, it is
   * opened again after a while. A damaged log stays open: closing it would write it into the file.
   */
  #release(openFile: OpenFile, error: unknown, isDamaged = false): void {
    if (!isFileLostError(error)) throw error;
    if (this.#openFileOrNull !== openFile) return;
    this.#openFileOrNull = null;
    this.#opening = null;
    const isFileGone = error instanceof FileGoneError;
    this.#fileLoss = {
      error,
      since: new Stopwatch(this.#environment),
      isForGood: isDamaged || (!isFileGone && keepsFileOpen(openFile.database)),
    };
    this.#unreportedLoss = isFileGone ? "replaced" : "log-removed";
    if (!isDamaged) openFile.database.close();
  }

  now(): number {
    return this.#environment.now();
  }

  read(keys: readonly string[]): readonly (VersionedRecord | null)[] {
    return readAll(this.#openFile.tables, keys, this.now());
  }

  async swap(items: readonly Swap[]): Promise<readonly SwapResult[]> {
    if (items.length === 0) return [];
    try {
      return await this.#write((tables) => items.map((item) => swapOne(tables, item, this.now())));
    } catch (error) {
      if (isDataRefused(error) && items.length > 1) {
        // One of the writes is at fault. Each is repeated by itself, so that it does not fail the others.
        const results: SwapResult[] = [];
        for (const item of items) results.push(...(await this.swap([item])));
        return results;
      }
      return items.map(() => ({ kind: outcomeKindOf(error), cause: error }));
    }
  }

  async takeDue(limit: Lanes, hideMs: number): Promise<DueRecords> {
    const { tables } = this.#openFile;
    // Polls without the lock at first, because most polls find nothing.
    const takenRows = isAnyDue(tables, limit, this.now()) ? await this.#hideDue(limit, hideMs) : [];
    return dueRecordsOf(tables, takenRows, this.now());
  }

  #hideDue(limit: Lanes, hideMs: number): Promise<readonly RecordRow[]> {
    return this.#write((tables) => hideDue(tables, limit, hideMs, this.now())).catch(rethrowAsCommitFailed);
  }

  async list(
    filter: EventFilter,
    cursor: ListCursor | null,
    limit: number,
    first: ListOrder = "oldest",
  ): Promise<ListPage> {
    await this.#nextTurn();
    return listEvents(this.#openFile.database, filter, cursor, limit, first, this.now());
  }

  async scan(cursor: string | null, limit: number): Promise<ScanPage> {
    await this.#nextTurn();
    return scanFrom(this.#openFile.tables, cursor, limit, this.now());
  }

  counts(): StoreCounts {
    return countsOf(this.#openFile.tables, this.now());
  }

  async prune(before: number): Promise<boolean> {
    await this.#nextTurn();
    if (!isAnyExpired(this.#openFile.tables, before)) return false;
    return this.#write((tables) => pruneSome(tables, before)).catch(rethrowAsCommitFailed);
  }

  async readNote(name: string): Promise<string | null> {
    return readNote(this.#openFile.database, name);
  }

  async writeNote(name: string, text: string): Promise<void> {
    const { database } = this.#openFile;
    await this.#write(() => writeNote(database, name, text)).catch(rethrowAsCommitFailed);
  }

  /** SQLite answers synchronously. Without a pause between them, a sequence of pages or steps would block everything else. */
  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#environment.nextTurn(resolve));
  }

  async #write<T>(work: (tables: Tables) => T): Promise<T> {
    const openFile = this.#openFile;
    try {
      return await openFile.writer.write(() => work(openFile.tables));
    } catch (error) {
      if (!isFileLostError(error)) throw error;
      this.#release(openFile, error);
      throw fileLostError(error);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening?.catch(() => {});
    const openFile = this.#openFileOrNull;
    if (openFile === null) return;
    this.#openFileOrNull = null;
    try {
      // Some drivers close the file only when they are garbage-collected. After this statement, the file is complete without
      // its log and can be copied by itself. Other processes see a commit, and so the reason why the file is written.
      writeVersion(openFile.database);
      openFile.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // Another process still uses the log, and will do this when it closes.
    }
    closeOrPark(openFile.database);
  }
}

/**
 * The absolute path of a file, because the process may be in another folder when it opens it again. URIs and `:memory:`
 * are names of SQLite.
 */
function toAbsolutePath(file: string): string {
  return file === "" || file === ":memory:" || file.startsWith("file:") ? file : resolve(file);
}

/** The fate of writes whose transaction failed. */
function outcomeKindOf(error: unknown): "not-written" | "refused" | "unknown" {
  if (error instanceof UnclearCommitError) return "unknown";
  return isDataRefused(error) ? "refused" : "not-written";
}

function rethrowAsCommitFailed(error: unknown): never {
  throw error instanceof PayhooksError ? error : commitFailedError(error);
}
