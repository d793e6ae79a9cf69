import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { onTestFinished } from "vitest";
import { removeFolder } from "../../../../test/support/remove-folder.ts";
import type { RecordStore, Swap, SwapResult } from "../../src/inbox/contract/store.ts";
import type { SqliteHandle } from "../../src/sqlite/handle.ts";
import { sqliteStore } from "../../src/sqlite/store.ts";
import { acceptedRecord, keyOf } from "../../src/testing/store/records.ts";
import { swapOf } from "../../src/testing/store/writes.ts";

/** The part of libsql that these tests use. */
export interface TestDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    get(...parameters: readonly unknown[]): unknown;
    all(...parameters: readonly unknown[]): unknown[];
    run(...parameters: readonly unknown[]): unknown;
  };
  close(): unknown;
}

/** Opens a file as a program of the user's own would. */
export function openFile(file: string): TestDatabase {
  return new Database(file) as TestDatabase;
}

/** A disk in memory: what survives a death of the machine is nothing that a test can see. */
const MEMORY_DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A path in a folder that goes with the test. */
export function newFile(name = "inbox.db"): string {
  const folder = mkdtempSync(join(MEMORY_DISK, "payhooks-sqlite-"));
  onTestFinished(() => removeFolder(folder));
  return join(folder, name);
}

/** The result of one statement about a file, through a handle of its own or the given one. */
export function ask(file: string | TestDatabase, sql: string): unknown {
  const database = typeof file === "string" ? openFile(file) : file;
  try {
    return Object.values((database.prepare(sql).get() ?? {}) as object)[0];
  } finally {
    if (typeof file === "string") database.close();
  }
}

/** A store that is open, and closed with the test. */
export async function openStore(file: string | SqliteHandle): Promise<RecordStore> {
  const store = sqliteStore(file);
  await store.open();
  onTestFinished(() => store.close());
  return store;
}

/** The write of record number `n`, in which an event waits. */
export function waiting(store: RecordStore, n: number, content?: Uint8Array): Swap {
  const key = keyOf(n);
  const sample = { id: `tx-${n}`, ...(content === undefined ? {} : { content }) };
  return swapOf(store, key, null, acceptedRecord(key, store.now(key), sample));
}

export const byKey = (a: { readonly key: string }, b: { readonly key: string }): number =>
  a.key < b.key ? -1 : 1;

/** Of each of the results, what became of the write. */
export async function fates(
  store: RecordStore,
  swaps: readonly Swap[],
): Promise<readonly SwapResult["kind"][]> {
  return (await store.swap(swaps)).map(({ kind }) => kind);
}

/** A handle that writes down what is done and prepared. */
export function watched(database: TestDatabase): {
  readonly handle: TestDatabase;
  readonly done: string[];
  readonly prepared: Set<string>;
} {
  const done: string[] = [];
  const prepared = new Set<string>();
  const handle: TestDatabase = {
    exec(sql) {
      done.push(sql);
      return database.exec(sql);
    },
    prepare(sql) {
      prepared.add(sql);
      return database.prepare(sql);
    },
    close: () => database.close(),
  };
  return { handle, done, prepared };
}
