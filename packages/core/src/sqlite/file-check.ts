import { closeSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { Stopwatch } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import type { SqliteDatabase, SqliteStatement } from "./handle.ts";

/** Thrown by a write whose file is no longer where it was. Other processes cannot find the written data. */
export class FileGone extends Error {
  override readonly name: string = "FileGone";
}

/** Thrown by a write whose file was overwritten: the file may no longer fit SQLite's log and memory. */
export class FileOverwritten extends FileGone {
  override readonly name = "FileOverwritten";
}

/** Thrown by a write whose log is no longer where it was, while another handle has the file open too. */
export class LogGone extends Error {
  override readonly name = "LogGone";
}

/** The files beside the file: its write-ahead log, and the memory that its processes share. */
const LOG = "-wal";
const COMPANIONS = [LOG, "-shm"] as const;

/** How a log begins (big-endian), in its two byte orders. */
const MAGIC: readonly number[] = [0x377f0682, 0x377f0683];

/** For so long after another handle's commit, it may still be writing the log back into the file. */
const WRITES_BACK_MS = 3_000;

/**
 * Checks that an open file and its companions are still those at their paths. SQLite keeps using a file that was deleted or
 * exchanged, as if nothing had happened. Its commits into a log that was removed are gone when the last process closes it.
 */
export class FileCheck {
  readonly #database: SqliteDatabase;
  /** Null if the driver does not give the path. Then a lost file cannot be noticed. */
  readonly #path: string | null;
  readonly #opened: Stats | null;
  #companions: readonly (readonly [path: string, opened: Stats])[] = [];
  #wasLogRemoved = false;
  readonly #version: SqliteStatement;
  readonly #environment: Environment;
  readonly #canSeeWrites: boolean;
  /** When the file itself was last written. SQLite writes into it only when it writes its log back, after a commit. */
  #writtenAt: number;
  /** Changes with each commit of another handle. */
  #others: unknown;
  #sinceOthers: Stopwatch;
  /** True if another handle has committed while this one is open. */
  #hasOthers = false;

  /** @param isOurs nobody else writes through this handle. */
  constructor(database: SqliteDatabase, environment: Environment, isOurs: boolean) {
    this.#database = database;
    this.#environment = environment;
    // Windows may say only later when a file was written.
    this.#canSeeWrites = isOurs && process.platform !== "win32";
    const list = database.prepare("PRAGMA database_list").all() as readonly { name: string; file: string }[];
    this.#path = list.find(({ name }) => name === "main")?.file || null;
    this.#opened = this.#look(this.#path);
    this.#writtenAt = this.#opened?.mtimeMs ?? 0;
    this.#version = database.prepare("PRAGMA data_version");
    // Another process may have committed just before.
    this.#sinceOthers = new Stopwatch(environment);
    this.noteOthers();
    this.#meetCompanions();
  }

  /** Notes whether another handle has committed something. */
  noteOthers(): void {
    const version = Object.values(this.#version.get() as object)[0];
    if (version === this.#others) return;
    this.#sinceOthers = new Stopwatch(this.#environment);
    this.#hasOthers = this.#others !== undefined;
    this.#others = version;
  }

  /**
   * True if a program other than SQLite has written into the file since the last call of `run`: there was no commit, so no log
   * was written back. Then the file does not fit SQLite's log and memory.
   */
  get isOverwritten(): boolean {
    const now = this.#look(this.#path)?.mtimeMs ?? this.#writtenAt;
    if (now === this.#writtenAt || !this.#canSeeWrites) return false;
    this.noteOthers();
    // An older time comes from a copy that kept it, unless the log of others was written back after a clock was set back.
    const isOlder = now < this.#writtenAt && !this.#hasOthers;
    if (isOlder || this.#sinceOthers.elapsedMs > WRITES_BACK_MS) return true;
    this.#writtenAt = now;
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
   * @throws FileGone, or LogGone
   */
  run(): void {
    const now = this.#look(this.#path);
    if (this.#path !== null && !isSame(now, this.#opened)) {
      throw new FileGone("The file was deleted or exchanged.");
    }
    this.#writtenAt = now?.mtimeMs ?? this.#writtenAt;
    if (this.#companions.every(([path, opened]) => isSame(this.#look(path), opened))) return;
    this.#wasLogRemoved = true;
    if (!this.#makeLogAnew()) throw new LogGone("The log of the file was removed.");
  }

  /** True if something other than SQLite has written into the log, or cut it. */
  get isLogDamaged(): boolean {
    const log = this.#companions.find(([path]) => path.endsWith(LOG));
    if (log === undefined) return false;
    const beginning = Buffer.alloc(4);
    const file = openSync(log[0], "r");
    try {
      // If the log is empty, another process has just written it back into the file.
      return readSync(file, beginning) === 4 && !MAGIC.includes(beginning.readUInt32BE());
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
    this.#meetCompanions();
    this.#writtenAt = this.#look(this.#path)?.mtimeMs ?? this.#writtenAt;
    return true;
  }

  /** Writes the removed log into the file, unless another process has begun a new log since. */
  #saveLog(): void {
    const isFirst = this.#companions.every(([path, opened]) => {
      const now = this.#look(path);
      return now === null || isSame(now, opened);
    });
    try {
      if (isFirst) this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // The loss is reported. Nothing more can be done.
    }
  }

  #meetCompanions(): void {
    const found = COMPANIONS.map(
      (end) => [`${this.#path}${end}`, this.#look(`${this.#path}${end}`)] as const,
    );
    this.#companions = found.flatMap(([path, opened]) => (opened === null ? [] : [[path, opened] as const]));
  }

  #look(path: string | null): Stats | null {
    if (path === null) return null;
    try {
      return statSync(path, { throwIfNoEntry: false }) ?? null;
    } catch (error) {
      // A missing folder counts as a missing file. A folder without permission says nothing.
      const { code } = error as { code?: unknown };
      if (code === "ENOTDIR" || code === "ENOENT") return null;
      return this.#known(path);
    }
  }

  #known(path: string): Stats | null {
    return path === this.#path ? this.#opened : (this.#companions.find(([one]) => one === path)?.[1] ?? null);
  }
}

function isSame(now: Stats | null, opened: Stats | null): boolean {
  return now !== null && now.ino === opened?.ino && now.dev === opened.dev;
}
