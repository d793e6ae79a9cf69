import { PayhooksError } from "../errors.ts";
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
];

/** Above this, the start does not read the whole file to check it. */
const MAX_CHECKED_PAGES = 20_000;

/**
 * Sets the file up for durable group commits, and brings its schema up to date.
 *
 * @throws PayhooksError `ERR_SQLITE_UNSUITABLE` for a foreign, newer, read-only or damaged file.
 */
export function prepareSchema(database: SqliteDatabase): void {
  try {
    database.exec("PRAGMA busy_timeout = 50");
    database.exec("PRAGMA journal_mode = WAL");
    // Every commit is on disk before it is answered.
    database.exec("PRAGMA synchronous = FULL");
    database.exec("PRAGMA cache_size = -32000");
    checkFile(database);
    migrate(database);
  } catch (cause) {
    if (cause instanceof PayhooksError) throw cause;
    throw unsuitable(
      `cannot be used: ${String(cause)}`,
      "Is it a SQLite file that this process may write? Restore a backup, or name a new file.",
      cause,
    );
  }
}

function checkFile(database: SqliteDatabase): void {
  const application = pragma(database, "application_id");
  const tables = (database.prepare("SELECT count(*) AS n FROM sqlite_master").get() as { n: number }).n;
  if (application !== APPLICATION_ID && (application !== 0 || tables > 0)) {
    throw unsuitable("belongs to another program", "Name a file of its own for the inbox.");
  }
  if (pragma(database, "page_count") > MAX_CHECKED_PAGES) return;
  const [row] = database.prepare("PRAGMA quick_check(1)").all() as Readonly<Record<string, unknown>>[];
  const [verdict] = Object.values(row ?? {});
  if (verdict !== "ok")
    throw unsuitable(
      `is damaged: ${String(verdict)}`,
      "Restore a backup, or name a new file and reconcile by look-ups.",
    );
}

function migrate(database: SqliteDatabase): void {
  const version = pragma(database, "user_version");
  if (version > MIGRATIONS.length) {
    throw unsuitable(
      `has schema version ${version}, newer than this package knows (${MIGRATIONS.length})`,
      "Update @payhooks/core.",
    );
  }
  if (version === MIGRATIONS.length) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have migrated between the look and the lock.
    for (const migration of MIGRATIONS.slice(pragma(database, "user_version"))) database.exec(migration);
    database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

function pragma(database: SqliteDatabase, name: string): number {
  const row = database.prepare(`PRAGMA ${name}`).get() as Readonly<Record<string, unknown>>;
  return Number(Object.values(row)[0]);
}

function unsuitable(how: string, fix: string, cause?: unknown): PayhooksError {
  return new PayhooksError("ERR_SQLITE_UNSUITABLE", `The file of sqliteInbox ${how}.`, { fix, cause });
}
