import { PayhooksError } from "../errors.ts";
import { describeError } from "../foreign-error.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { Records } from "./records.ts";

/** Work that waits for the next transaction. */
interface Waiting {
  readonly work: () => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly since: number;
}

/** How long a write may wait for another process that holds the file; shorter than a delivery may take. */
const BUSY_LIMIT_MS = 1_500;
const BUSY_PAUSE_MS = 5;

/**
 * Group commit: everything that is asked for in one turn of the event loop shares one transaction, one commit and one
 * fsync, and is answered only when that commit is on disk.
 */
export class Batch {
  readonly #database: SqliteDatabase;
  readonly #rows: Records;
  #waiting: Waiting[] = [];
  #scheduled = false;

  constructor(database: SqliteDatabase, rows: Records) {
    this.#database = database;
    this.#rows = rows;
  }

  /**
   * Runs `work` inside the next transaction; resolves once it is committed. `work` must read and decide before it
   * writes: when it throws, the others of its transaction still commit. It may be run again in another transaction.
   */
  run<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, resolve, reject, since: performance.now() });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#commit());
  }

  #commit(): void {
    this.#scheduled = false;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#transact(batch);
  }

  #transact(batch: readonly Waiting[]): void {
    try {
      this.#database.exec("BEGIN IMMEDIATE");
    } catch (error) {
      if (isBusy(error)) this.#postpone(batch, error);
      else for (const { reject } of batch) reject(unavailable(error));
      return;
    }
    this.#rows.begin();
    const done: (() => void)[] = [];
    for (const { work, resolve, reject } of batch) {
      try {
        const value = work();
        done.push(() => resolve(value as never));
      } catch (error) {
        if (error instanceof PayhooksError) done.push(() => reject(error));
        else {
          this.#rollBack();
          // Each by itself: a record that cannot be read must not fail the others of its turn.
          if (batch.length === 1) reject(unavailable(error));
          else for (const waiting of batch) this.#transact([waiting]);
          return;
        }
      }
    }
    try {
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#rollBack();
      for (const { reject } of batch) reject(unavailable(error));
      return;
    }
    for (const settle of done) settle();
  }

  #rollBack(): void {
    this.#rows.forget();
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
  }

  /** Another process writes: try again soon, without blocking the event loop meanwhile. */
  #postpone(batch: readonly Waiting[], error: unknown): void {
    const now = performance.now();
    const kept: Waiting[] = [];
    for (const waiting of batch) {
      if (now - waiting.since > BUSY_LIMIT_MS) waiting.reject(unavailable(error));
      else kept.push(waiting);
    }
    this.#waiting = [...kept, ...this.#waiting];
    if (this.#waiting.length === 0) return;
    this.#scheduled = true;
    setTimeout(() => this.#commit(), BUSY_PAUSE_MS);
  }

  /** Resolves when nothing waits. */
  async idle(): Promise<void> {
    while (this.#waiting.length > 0) await this.run(() => {}).catch(() => {});
  }
}

/** True when another process holds the file. */
export function isBusy(error: unknown): boolean {
  return /SQLITE_BUSY|database is locked|database table is locked/i.test(
    `${(error as { code?: unknown }).code} ${String(error)}`,
  );
}

function unavailable(cause: unknown): PayhooksError {
  return new PayhooksError("ERR_INBOX_UNAVAILABLE", `SQLite could not commit: ${describeError(cause)}.`, {
    fix: "Is the disk full, the file damaged, or held by another program? Until it works, deliveries are answered 503.",
    cause,
  });
}
