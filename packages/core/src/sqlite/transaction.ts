import { isBusy, isFull } from "./failure.ts";
import type { SqliteDatabase } from "./handle.ts";

/** Thrown if the disk failed in the middle of a commit. The write may turn up when the file is recovered. */
export class UnclearCommitError extends Error {
  override readonly name = "UnclearCommitError";
}

/**
 * Runs `work` in one transaction, synchronously. The transaction holds the write lock from the beginning, so no other
 * process changes the data that it reads. On return the transaction is on disk. If SQLite or `work` throws, nothing was
 * written.
 *
 * @throws UnclearCommitError
 */
export function runInTransaction<T>(database: SqliteDatabase, work: () => T): T {
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
    // The mark that ends a transaction is written last. If there was no room for it, nothing was committed.
    if (isFull(cause) || isBusy(cause)) throw cause;
    throw new UnclearCommitError("The disk failed during a commit.", { cause });
  }
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // SQLite has rolled back by itself, as it does when the disk is full.
  }
}
