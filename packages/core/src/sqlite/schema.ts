import { PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { isBusy } from "./failure.ts";
import type { SqliteDatabase } from "./handle.ts";
import { runInTransaction } from "./transaction.ts";

/** "PYHK": distinguishes a file of Payhooks from that of another program. */
export const APPLICATION_ID = 0x5059484b;

/** The version of the tables. */
export const SCHEMA_VERSION = 8;

/**
 * Each record has a row, and so has each of its events. Rows are stored in the order in which they were written (`row_id`,
 * `record`). Ordered by their ids, which are random, rows that are written together would be on different pages. Finished
 * events are found only by time, id and reference. Everything that counts or lists unfinished events uses an index of those
 * alone. A held event with several readings has a row in `readings` for each id and reference that it can be found by.
 */
const SCHEMA_SQL = `
  CREATE TABLE IF NOT EXISTS records (
    row_id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    version TEXT NOT NULL,
    text TEXT NOT NULL,
    lane TEXT NOT NULL,
    due_at INTEGER,
    due_in_ms INTEGER NOT NULL,
    expires_at INTEGER
  );
  CREATE INDEX IF NOT EXISTS records_by_due ON records (lane, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS records_by_due_from ON records (lane, due_at - due_in_ms) WHERE due_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS records_by_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE IF NOT EXISTS events (
    record INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    flow TEXT NOT NULL,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    event TEXT NOT NULL,
    status TEXT NOT NULL,
    reference_id TEXT,
    accepted_at INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS events_by_record ON events (record);
  CREATE INDEX IF NOT EXISTS finished_events ON events (accepted_at) WHERE state = 'finished';
  CREATE INDEX IF NOT EXISTS events_by_id ON events (id);
  CREATE INDEX IF NOT EXISTS events_by_reference ON events (reference_id) WHERE reference_id IS NOT NULL;
  CREATE INDEX IF NOT EXISTS unfinished_events ON events (state, accepted_at, reason) WHERE state <> 'finished';
  CREATE TABLE IF NOT EXISTS readings (text TEXT NOT NULL, record INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS readings_by_text ON readings (text);
  CREATE INDEX IF NOT EXISTS readings_by_record ON readings (record);
  CREATE TRIGGER IF NOT EXISTS events_go_with_their_record AFTER DELETE ON records BEGIN
    DELETE FROM events WHERE record = old.row_id;
    DELETE FROM readings WHERE record = old.row_id;
  END;
  CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;`;

/** Above this, the start does not read the whole file to check it. */
const MAX_CHECKED_PAGES = 20_000;

/** How long a statement may wait for another process. Such a wait blocks the event loop, so timers wait for the rest. */
const BUSY_TIMEOUT_MS = 2;

/**
 * Sets the file up so that each commit is on disk when it returns, and makes the missing tables. Returns the id of the
 * data set: the given id if it had none. With null instead of an id, nothing is made. A file of another program is left
 * as it is.
 *
 * @throws PayhooksError `ERR_SQLITE_UNSUITABLE` for a foreign, earlier, newer, read-only or damaged file; `ERR_INBOX_UNUSED`
 * for an empty one in which nothing is to be made; SQLite's own error while another process holds the file.
 */
export function prepareSchema(database: SqliteDatabase, newId: string | null): string {
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    checkOwner(database);
    if (newId === null && readPragma(database, "user_version") === 0)
      throw unusedInboxError("The file is empty");
    const journal = onlyValueOf(database.prepare("PRAGMA journal_mode = WAL").get());
    if (journal !== "wal") {
      throw unsuitableError(
        `cannot have a write-ahead log (its journal is "${journal}")`,
        "Name a file on a local disk. One in memory, or on a network file system, would lose acknowledged events.",
      );
    }
    // Every commit is on disk before it is answered.
    database.exec("PRAGMA synchronous = FULL");
    database.exec("PRAGMA cache_size = -32000");
    // Erased data is overwritten, and not only taken out of the lists.
    database.exec("PRAGMA secure_delete = ON");
    checkPages(database);
    return makeTables(database, newId);
  } catch (cause) {
    if (cause instanceof PayhooksError || isBusy(cause)) throw cause;
    throw unsuitableError(
      `cannot be used: ${describeError(cause)}`,
      "Check that it is a SQLite file that this process may write. Otherwise restore a backup, or name a new file.",
      cause,
    );
  }
}

function checkOwner(database: SqliteDatabase): void {
  // The order matters, because another process may be making the tables at this moment. It writes the application id last.
  const tables = Number(onlyValueOf(database.prepare("SELECT count(*) FROM sqlite_master").get()));
  const application = readPragma(database, "application_id");
  if (application !== APPLICATION_ID && (application !== 0 || tables > 0)) {
    throw unsuitableError("belongs to another program", "Name a file of its own for the inbox.");
  }
}

function checkPages(database: SqliteDatabase): void {
  if (readPragma(database, "page_count") > MAX_CHECKED_PAGES) return;
  const verdict = onlyValueOf(database.prepare("PRAGMA quick_check(1)").get());
  if (verdict === "ok") return;
  throw unsuitableError(
    `is damaged: ${String(verdict)}`,
    "Restore a backup, or name a new file and reconcile by look-ups.",
  );
}

function makeTables(database: SqliteDatabase, newId: string | null): string {
  // This takes the lock, because another process, perhaps of another version, may do the same now.
  return runInTransaction(database, () => {
    const version = readPragma(database, "user_version");
    if (version !== 0) checkVersion(version);
    // Makes deleted parts again, too. Only a write shows that the file is read-only. It has to be found out now,
    // because the handle would stay read-only for good.
    if (newId !== null) {
      createTables(database, newId);
      writeVersion(database);
      database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    }
    return datasetIdOf(database);
  });
}

/** Makes the missing parts of the tables. The data set gets this id if it had none. */
export function createTables(database: SqliteDatabase, newId: string): void {
  database.exec(SCHEMA_SQL);
  database.prepare("INSERT OR IGNORE INTO meta (name, value) VALUES ('dataset_id', ?)").run(newId);
}

/** Writes the version of the tables. This is a commit, though nothing changes. */
export function writeVersion(database: SqliteDatabase): void {
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
}

function checkVersion(version: number): void {
  if (version > SCHEMA_VERSION) {
    throw unsuitableError(
      `has schema version ${version}, newer than this package knows (${SCHEMA_VERSION})`,
      "Update @payhooks/core.",
    );
  }
  if (version < SCHEMA_VERSION) {
    throw unsuitableError(
      `has schema version ${version}, of a version before the first release`,
      "Let the version that wrote it finish the events that wait in it. Then move the file away, and a new one is made.",
    );
  }
}

function readPragma(database: SqliteDatabase, name: string): number {
  return Number(onlyValueOf(database.prepare(`PRAGMA ${name}`).get()));
}

/** The only column of a row. */
function onlyValueOf(row: unknown): unknown {
  return Object.values((row ?? {}) as Readonly<Record<string, unknown>>)[0];
}

/** The error for a file that no receiver has ever used, when it is not to be created. */
export function unusedInboxError(reason: string): PayhooksError {
  return new PayhooksError("ERR_INBOX_UNUSED", `${reason}: no receiver has used it as its inbox.`, {
    fix: "Name the file as the receiver does. A relative path starts at the folder in which the process was started.",
  });
}

/** The id of the data set that is stored now. */
export function datasetIdOf(database: SqliteDatabase): string {
  return String(onlyValueOf(database.prepare("SELECT value FROM meta WHERE name = 'dataset_id'").get()));
}

/** Fails if a table of events is missing. */
export function checkTables(database: SqliteDatabase): void {
  database.prepare("SELECT 1 FROM records, events, readings LIMIT 0").get();
}

/** A text that is kept beside the data. */
export function readNote(database: SqliteDatabase, name: string): string | null {
  const noteText = onlyValueOf(database.prepare("SELECT value FROM meta WHERE name = ?").get(`note ${name}`));
  return noteText === undefined ? null : String(noteText);
}

export function writeNote(database: SqliteDatabase, name: string, text: string): void {
  database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)").run(`note ${name}`, text);
}

function unsuitableError(how: string, fix: string, cause?: unknown): PayhooksError {
  return new PayhooksError("ERR_SQLITE_UNSUITABLE", `The file of sqliteInbox ${how}.`, { fix, cause });
}
