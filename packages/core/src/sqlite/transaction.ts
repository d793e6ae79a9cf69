import type { SqliteDatabase } from "./driver.ts";
import { isBusy, isFull } from "./failure.ts";

/** Thrown where the disk failed in the middle of a commit: what was written may turn up when the file is recovered. */
export class UnclearCommit extends Error {
  override readonly name = "UnclearCommit";
}

/**
 * Does `work` as one transaction, at once, holding the write lock from its beginning: what it reads nobody else changes.
 * It is on disk on return. What SQLite throws, and what `work` does, means that nothing was written.
 *
 * @throws UnclearCommit
 */
export function transact<T>(database: SqliteDatabase, work: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const value = work();
    commit(database);
    return value;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

function commit(database: SqliteDatabase): void {
  try {
    database.exec("COMMIT");
  } catch (cause) {
    // The mark that ends a transaction is written last: where there was no room for it, there was no commit.
    if (isFull(cause) || isBusy(cause)) throw cause;
    throw new UnclearCommit("The disk failed during a commit.", { cause });
  }
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // SQLite has rolled back by itself, as it does when the disk is full.
  }
}
