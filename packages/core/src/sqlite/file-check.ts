import { closeSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { Stopwatch } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import type { SqliteDatabase, SqliteStatement } from "./handle.ts";

/** Thrown by a write whose file is no longer where it was. Other processes cannot find the written data. */
export class FileGoneError extends Error {
  override readonly name: string = "FileGoneError";
}

/** Thrown by a write whose file was overwritten: the file may no longer fit SQLite's log and memory. */
export class FileOverwrittenError extends FileGoneError {
  override readonly name = "FileOverwrittenError";
}

/** Thrown by a write whose log is no longer where it was, while another handle has the file open too. */
export class LogGoneError extends Error {
  override readonly name = "LogGoneError";
}

/** The files beside the file: its write-ahead log, and the memory that its processes share. */
const LOG_SUFFIX = "-wal";
const COMPANION_SUFFIXES = [LOG_SUFFIX, "-shm"] as const;

/** How a log begins (big-endian), in its two byte orders. */
const LOG_MAGIC_NUMBERS: readonly number[] = [0x377f0682, 0x377f0683];

/** For so long after another handle's commit, it may still be writing the log back into the file. */
const MAX_WRITE_BACK_MS = 3_000;

/**
 * Checks that an open file and its companions are still those at their paths. SQLite keeps using a file that was deleted or
 * exchanged, as if nothing had happened. Its commits into a log that was removed are gone when the last process closes it.
 */
export class FileCheck {
  readonly #database: SqliteDatabase;
  /** Null if the driver does not give the path. Then a lost file cannot be noticed. */
  readonly #path: string | null;
  readonly #openedStats: Stats | null;
  #companions: readonly (readonly [path: string, opened: Stats])[] = [];
  #wasLogRemoved = false;
  readonly #selectDataVersion: SqliteStatement;
  readonly #environment: Environment;
  readonly #canSeeWrites: boolean;
  /** When the file itself was last written. SQLite writes into it only when it writes its log back, after a commit. */
  #writtenAt: number;
  /** Changes with each commit of another handle. */
  #dataVersion: unknown;
  #sinceOtherCommit: Stopwatch;
  /** True if another handle has committed while this one is open. */
  #hasOtherCommit = false;

  /** @param isOurs nobody else writes through this handle. */
  constructor(database: SqliteDatabase, environment: Environment, isOurs: boolean) {
    this.#database = database;
    this.#environment = environment;
    // Windows may say only later when a file was written.
    this.#canSeeWrites = isOurs && process.platform !== "win32";
    const list = database.prepare("PRAGMA database_list").all() as readonly { name: string; file: string }[];
    this.#path = list.find(({ name }) => name === "main")?.file || null;
    this.#openedStats = this.#statOf(this.#path);
    this.#writtenAt = this.#openedStats?.mtimeMs ?? 0;
    this.#selectDataVersion = database.prepare("PRAGMA data_version");
    // Another process may have committed just before.
    this.#sinceOtherCommit = new Stopwatch(environment);
    this.noteOtherCommits();
    this.#statCompanions();
  }

  /** Notes whether another handle has committed something. */
  noteOtherCommits(): void {
    const version = Object.values(this.#selectDataVersion.get() as object)[0];
    if (version === this.#dataVersion) return;
    this.#sinceOtherCommit = new Stopwatch(this.#environment);
    this.#hasOtherCommit = this.#dataVersion !== undefined;
    this.#dataVersion = version;
  }

  /**
   * True if a program other than SQLite has written into the file since the last call of `run`: there was no commit, so no log
   * was written back. Then the file does not fit SQLite's log and memory.
   */
  get isOverwritten(): boolean {
    const modifiedAt = this.#statOf(this.#path)?.mtimeMs ?? this.#writtenAt;
    if (modifiedAt === this.#writtenAt || !this.#canSeeWrites) return false;
    this.noteOtherCommits();
    // An older time comes from a copy that kept it, unless the log of others was written back after a clock was set back.
    const isOlder = modifiedAt < this.#writtenAt && !this.#hasOtherCommit;
    if (isOlder || this.#sinceOtherCommit.elapsedMs > MAX_WRITE_BACK_MS) return true;
    this.#writtenAt = modifiedAt;
    return false;
  }

  /** True if the log was removed since the last call, whether or not it could be made anew. */
  takeLogRemoved(): boolean {
    const wasRemoved = this.#wasLogRemoved;
    this.#wasLogRemoved = false;
    return wasRemoved;
  }

  /**
   * Makes sure that committed data is in files that other processes find. If only the log or the shared memory was removed, and
   * no other process has the file open, the log is written into the file, and both are created again: nothing is lost.
   *
   * @throws FileGoneError, or LogGoneError
   */
  run(): void {
    const stats = this.#statOf(this.#path);
    if (this.#path !== null && !isSameFile(stats, this.#openedStats)) {
      throw new FileGoneError("The file was deleted or exchanged.");
    }
    this.#writtenAt = stats?.mtimeMs ?? this.#writtenAt;
    if (this.#companions.every(([path, opened]) => isSameFile(this.#statOf(path), opened))) return;
    this.#wasLogRemoved = true;
    if (!this.#makeLogAnew()) throw new LogGoneError("The log of the file was removed.");
  }

  /** True if something other than SQLite has written into the log, or cut it. */
  get isLogDamaged(): boolean {
    const log = this.#companions.find(([path]) => path.endsWith(LOG_SUFFIX));
    if (log === undefined) return false;
    const beginning = Buffer.alloc(4);
    const file = openSync(log[0], "r");
    try {
      // If the log is empty, another process has just written it back into the file.
      return readSync(file, beginning) === 4 && !LOG_MAGIC_NUMBERS.includes(beginning.readUInt32BE());
    } finally {
      closeSync(file);
    }
  }

  #makeLogAnew(): boolean {
    try {
      // Leaving the mode needs the file for this handle alone. So no process can continue with the old log beside the new log.
      this.#database.exec("PRAGMA journal_mode = DELETE");
      this.#database.exec("PRAGMA journal_mode = WAL");
      this.#database.exec("BEGIN IMMEDIATE; COMMIT");
    } catch {
      this.#saveLog();
      return false;
    }
    this.#statCompanions();
    this.#writtenAt = this.#statOf(this.#path)?.mtimeMs ?? this.#writtenAt;
    return true;
  }

  /** Writes the removed log into the file, unless another process has begun a new log since. */
  #saveLog(): void {
    const isLogUnclaimed = this.#companions.every(([path, opened]) => {
      const stats = this.#statOf(path);
      return stats === null || isSameFile(stats, opened);
    });
    try {
      if (isLogUnclaimed) this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // The loss is reported. Nothing more can be done.
    }
  }

  #statCompanions(): void {
    const companions = COMPANION_SUFFIXES.map(
      (end) => [`${this.#path}${end}`, this.#statOf(`${this.#path}${end}`)] as const,
    );
    this.#companions = companions.flatMap(([path, opened]) =>
      opened === null ? [] : [[path, opened] as const],
    );
  }

  #statOf(path: string | null): Stats | null {
    if (path === null) return null;
    try {
      return statSync(path, { throwIfNoEntry: false }) ?? null;
    } catch (error) {
      // A missing folder counts as a missing file. A folder without permission says nothing.
      const { code } = error as { code?: unknown };
      if (code === "ENOTDIR" || code === "ENOENT") return null;
      return this.#knownStats(path);
    }
  }

  #knownStats(path: string): Stats | null {
    return path === this.#path
      ? this.#openedStats
      : (this.#companions.find(([companion]) => companion === path)?.[1] ?? null);
  }
}

function isSameFile(currentStats: Stats | null, openedStats: Stats | null): boolean {
  return (
    currentStats !== null && currentStats.ino === openedStats?.ino && currentStats.dev === openedStats.dev
  );
}
