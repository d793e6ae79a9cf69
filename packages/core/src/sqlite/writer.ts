import type { Environment } from "../environment.ts";
import type { SqliteDatabase } from "./driver.ts";
import { isBusy } from "./failure.ts";
import { transact, UnclearCommit } from "./transaction.ts";
import { whenFree } from "./when-free.ts";

/** How long a write may wait for another process; shorter than a delivery may take. */
const LIMIT_MS = 1_500;

interface Write {
  readonly work: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes to a file that other processes may hold. A write is made at once where the file is free. Those that come while
 * one has to wait share its transaction, and its `fsync`, as soon as the file is free.
 */
export class Writer {
  readonly #database: SqliteDatabase;
  readonly #environment: Environment;
  #waiting: Write[] = [];
  #isAtIt = false;

  constructor(database: SqliteDatabase, environment: Environment) {
    this.#database = database;
    this.#environment = environment;
  }

  /** Does `work` in a transaction, perhaps more than once, of which one counts. Rejects as {@link transact} throws. */
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
        await whenFree(this.#environment, LIMIT_MS, () => this.#writeAll());
      } catch (error) {
        for (const { reject } of this.#take()) reject(error);
      }
    }
    this.#isAtIt = false;
  }

  #writeAll(): void {
    const writes = this.#waiting;
    try {
      const values = transact(this.#database, () => writes.map(({ work }) => work()));
      for (const [at, { resolve }] of this.#take().entries()) resolve(values[at]);
    } catch (error) {
      if (writes.length === 1 || isBusy(error) || error instanceof UnclearCommit) throw error;
      for (const one of this.#take()) this.#writeAlone(one);
    }
  }

  /** What fails one of them must not fail the others. */
  #writeAlone({ work, resolve, reject }: Write): void {
    try {
      resolve(transact(this.#database, work));
    } catch (error) {
      reject(error);
    }
  }

  #take(): readonly Write[] {
    const writes = this.#waiting;
    this.#waiting = [];
    return writes;
  }
}
