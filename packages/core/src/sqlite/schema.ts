import { PayhooksError } from "../errors.ts";
import { describeError } from "../foreign-error.ts";
import { isBusy } from "./batch.ts";
import type { SqliteDatabase } from "./driver.ts";

/** "PYHK": tells a file of ours from another program's. */
const APPLICATION_ID = 0x5059484b;

/** Each entry takes the schema one version further; never change one that was released. */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE records (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires INTEGER);
   CREATE INDEX records_by_expiry ON records (expires) WHERE expires IS NOT NULL;
   CREATE TABLE held (event TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
   CREATE INDEX held_by_time ON held (at);
   CREATE TABLE refs (key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires INTEGER NOT NULL) WITHOUT ROWID;
   CREATE TABLE jobs (id TEXT PRIMARY KEY, due INTEGER NOT NULL) WITHOUT ROWID;
   CREATE INDEX jobs_by_time ON jobs (due);`,
  // Ids are random, so that each job by id changes a page of its own; by the place of its record, many share one.
  `ALTER TABLE jobs RENAME TO jobs_by_id;
   DROP INDEX jobs_by_time;
   CREATE TABLE jobs (place INTEGER, id TEXT, due INTEGER NOT NULL, PRIMARY KEY (place, id)) WITHOUT ROWID;
   CREATE INDEX jobs_by_time ON jobs (due);
   INSERT INTO jobs (place, id, due)
     SELECT coalesce((SELECT rowid FROM records WHERE key = substr(id, 1, 32)), 0), id, due FROM jobs_by_id;
   DROP TABLE jobs_by_id;`,
];

/** Above this, the start does not read the whole file to check it. */
const MAX_CHECKED_PAGES = 20_000;

/** How long a statement may wait, and the event loop with it, for another process; the rest is waited for by timers. */
const BUSY_TIMEOUT_MS = 5;

/**
 * Sets the file up for durable group commits, and brings its schema up to date. A file that is not ours is left as it
 * is.
 *
 * @throws PayhooksError `ERR_SQLITE_UNSUITABLE` for a foreign, newer, read-only or damaged file; `ERR_INBOX_UNAVAILABLE`
 * while another process holds it.
 */
export function prepareSchema(database: SqliteDatabase): void {
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    checkOwner(database);
    const journal = value(database.prepare("PRAGMA journal_mode = WAL").get());
    if (journal !== "wal") {
      throw unsuitable(
        `cannot have a write-ahead log (its journal is "${journal}")`,
        "Name a file on a local disk: one in memory, or on a network file system, would lose what it acknowledged.",
      );
    }
    // Every commit is on disk before it is answered.
    database.exec("PRAGMA synchronous = FULL");
    database.exec("PRAGMA cache_size = -32000");
    checkPages(database);
    migrate(database);
  } catch (cause) {
    if (cause instanceof PayhooksError) throw cause;
    if (isBusy(cause)) {
      throw new PayhooksError("ERR_INBOX_UNAVAILABLE", "Another process holds the file of sqliteInbox.", {
        fix: "It is tried again with the next delivery. Is a program other than yours in the middle of a transaction?",
        cause,
      });
    }
    throw unsuitable(
      `cannot be used: ${describeError(cause)}`,
      "Is it a SQLite file that this process may write? Restore a backup, or name a new file.",
      cause,
    );
  }
}

function checkOwner(database: SqliteDatabase): void {
  // In this order, since another process may be making the tables, and the mark with them, at this moment.
  const tables = Number(value(database.prepare("SELECT count(*) FROM sqlite_master").get()));
  const application = pragma(database, "application_id");
  if (application !== APPLICATION_ID && (application !== 0 || tables > 0)) {
    throw unsuitable("belongs to another program", "Name a file of its own for the inbox.");
  }
}

function checkPages(database: SqliteDatabase): void {
  if (pragma(database, "page_count") > MAX_CHECKED_PAGES) return;
  const verdict = value(database.prepare("PRAGMA quick_check(1)").get());
  if (verdict === "ok") return;
  throw unsuitable(
    `is damaged: ${String(verdict)}`,
    "Restore a backup, or name a new file and reconcile by look-ups.",
  );
}

function migrate(database: SqliteDatabase): void {
  // Also when there is nothing to migrate: a file that may only be read must be found out now.
  database.exec("BEGIN IMMEDIATE");
  try {
    // Under the lock: another process, of another version, may be at it too.
    const version = pragma(database, "user_version");
    if (version > MIGRATIONS.length) {
      throw unsuitable(
        `has schema version ${version}, newer than this package knows (${MIGRATIONS.length})`,
        "Update @payhooks/core.",
      );
    }
    for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
    database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

function pragma(database: SqliteDatabase, name: string): number {
  return Number(value(database.prepare(`PRAGMA ${name}`).get()));
}

/** The only column of a row. */
function value(row: unknown): unknown {
  return Object.values((row ?? {}) as Readonly<Record<string, unknown>>)[0];
}

function unsuitable(how: string, fix: string, cause?: unknown): PayhooksError {
  return new PayhooksError("ERR_SQLITE_UNSUITABLE", `The file of sqliteInbox ${how}.`, { fix, cause });
}
