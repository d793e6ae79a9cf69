import type { Environment } from "../time/environment.ts";
import { isBusy } from "./failure.ts";
import { type FileCheck, FileGone, FileOverwritten, LogGone } from "./file-check.ts";
import type { SqliteDatabase } from "./handle.ts";
import { inTransaction, UnclearCommit } from "./transaction.ts";
import { whenFree } from "./when-free.ts";

/** How long a write may wait for another process; shorter than a delivery may take. */
const LOCKED_LIMIT_MS = 1_500;

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
  #waiting: Write[] = [];
  #isAtIt = false;

  constructor(database: SqliteDatabase, fileCheck: FileCheck, environment: Environment) {
    this.#database = database;
    this.#fileCheck = fileCheck;
    this.#environment = environment;
  }

  /**
   * Runs `work` in a transaction. It may be called several times, but only one call is committed. Rejects with the error of
   * {@link inTransaction}, or with that of {@link FileCheck.run} if other processes would not find the written data.
   */
  write<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, resolve: resolve as Write["resolve"], reject });
      if (!this.#isAtIt) void this.#writeWhenFree();
    });
  }

  async #writeWhenFree(): Promise<void> {
    this.#isAtIt = true;
    while (this.#waiting.length > 0) {
      try {
        await whenFree(this.#environment, LOCKED_LIMIT_MS, () => this.#writeAll());
      } catch (error) {
        for (const { reject } of this.#take()) reject(error);
      }
    }
    this.#isAtIt = false;
  }

  #writeAll(): void {
    const writes = this.#waiting;
    try {
      const values = this.#commit(() => writes.map(({ work }) => work()));
      for (const [at, { resolve }] of this.#take().entries()) resolve(values[at]);
    } catch (error) {
      const isGone = error instanceof FileGone || error instanceof LogGone;
      const concernsAll = isBusy(error) || error instanceof UnclearCommit || isGone;
      if (writes.length === 1 || concernsAll) throw error;
      for (const one of this.#take()) this.#writeAlone(one);
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
    if (this.#fileCheck.isOverwritten) throw new FileOverwritten("The file was overwritten.");
    const value = inTransaction(this.#database, work);
    this.#fileCheck.run();
    return value;
  }

  #take(): readonly Write[] {
    const writes = this.#waiting;
    this.#waiting = [];
    return writes;
  }
}
