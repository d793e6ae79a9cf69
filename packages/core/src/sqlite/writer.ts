import type { Environment } from "../time/environment.ts";
import { isBusy } from "./failure.ts";
import { type FileCheck, FileGoneError, FileOverwrittenError, LogGoneError } from "./file-check.ts";
import type { SqliteDatabase } from "./handle.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";
import { runInTransaction, UnclearCommitError } from "./transaction.ts";

/** How long a write may wait for another process; shorter than a delivery may take. */
const LOCK_TIMEOUT_MS = 1_500;

interface Write {
  readonly work: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes to a file that other processes may have locked. If the file is free, a write is made at once. Writes that come while
 * another write waits share its transaction and its `fsync`, as soon as the file is free.
 */
export class Writer {
  readonly #database: SqliteDatabase;
  readonly #environment: Environment;
  readonly #fileCheck: FileCheck;
  #queue: Write[] = [];
  #isWriting = false;

  constructor(database: SqliteDatabase, fileCheck: FileCheck, environment: Environment) {
    this.#database = database;
    this.#fileCheck = fileCheck;
    this.#environment = environment;
  }

  /**
   * Runs `work` in a transaction. It may be called several times, but only one call is committed. Rejects with the error of
   * {@link runInTransaction}, or with that of {@link FileCheck.run} if other processes would not find the written data.
   */
  write<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as Write["resolve"], reject });
      if (!this.#isWriting) void this.#writeQueue();
    });
  }

  async #writeQueue(): Promise<void> {
    this.#isWriting = true;
    while (this.#queue.length > 0) {
      try {
        await retryWhileLocked(this.#environment, LOCK_TIMEOUT_MS, () => this.#writeAll());
      } catch (error) {
        for (const { reject } of this.#takeQueue()) reject(error);
      }
    }
    this.#isWriting = false;
  }

  #writeAll(): void {
    const writes = this.#queue;
    try {
      const values = this.#commit(() => writes.map(({ work }) => work()));
      for (const [index, { resolve }] of this.#takeQueue().entries()) resolve(values[index]);
    } catch (error) {
      const isGone = error instanceof FileGoneError || error instanceof LogGoneError;
      const concernsAll = isBusy(error) || error instanceof UnclearCommitError || isGone;
      if (writes.length === 1 || concernsAll) throw error;
      for (const write of this.#takeQueue()) this.#writeAlone(write);
    }
  }

  /** Runs one write by itself, so that its failure does not fail the others. */
  #writeAlone({ work, resolve, reject }: Write): void {
    try {
      resolve(this.#commit(work));
    } catch (error) {
      reject(error);
    }
  }

  #commit<T>(work: () => T): T {
    if (this.#fileCheck.isOverwritten) throw new FileOverwrittenError("The file was overwritten.");
    const value = runInTransaction(this.#database, work);
    this.#fileCheck.run();
    return value;
  }

  #takeQueue(): readonly Write[] {
    const writes = this.#queue;
    this.#queue = [];
    return writes;
  }
}
