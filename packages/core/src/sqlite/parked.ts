import { type BigIntStats, statSync } from "node:fs";
import type { SqliteDatabase } from "./handle.ts";

/*
 * libsql cannot finalize a prepared statement. A closed handle keeps its file open until all of its statements are
 * garbage-collected. If each opening made a new handle, more and more of them would keep the file open. So a handle is parked
 * when it is closed, and the next user of the same file gets it. Only a weak reference is kept, so that a parked handle can be
 * collected.
 */

/**
 * Device and inode of a file, which identify it under any name. No other file gets the same number while a handle has it open.
 */
type FileNumber = string;

/** A handle that nobody uses. */
interface Parked {
  readonly handle: WeakRef<SqliteDatabase>;
  /**
   * The state of the file when the handle was parked. The handle would not notice changes that something other than SQLite has
   * made.
   */
  readonly state: string;
}

const parked = new Map<FileNumber, Parked[]>();
const files = new WeakMap<SqliteDatabase, { readonly name: string; readonly number: FileNumber }>();
const collected = new FinalizationRegistry<FileNumber>(forget);

function look(name: string): { readonly number: FileNumber; readonly state: string } | null {
  const found: BigIntStats | undefined = statSync(name, { bigint: true, throwIfNoEntry: false });
  if (found === undefined) return null;
  return { number: `${found.dev}:${found.ino}`, state: `${found.size}:${found.mtimeNs}` };
}

function forget(number: FileNumber): void {
  const rest = (parked.get(number) ?? []).filter(({ handle }) => handle.deref() !== undefined);
  if (rest.length > 0) parked.set(number, rest);
  else parked.delete(number);
}

/** A parked handle of exactly this file; null if there is none. */
export function unpark(name: string): SqliteDatabase | null {
  const file = look(name);
  if (file === null) return null;
  const handles = parked.get(file.number) ?? [];
  for (let one = handles.pop(); one !== undefined; one = handles.pop()) {
    const database = one.handle.deref();
    if (database !== undefined && one.state === file.state) return database;
  }
  parked.delete(file.number);
  return null;
}

/** Marks a new handle, so that it is parked when it is closed. */
export function parkAtClose(name: string, database: SqliteDatabase): void {
  const file = look(name);
  if (file === null) return;
  files.set(database, { name, number: file.number });
  collected.register(database, file.number);
}

/** True if a handle keeps its file open after it is closed. */
export function staysOpen(database: SqliteDatabase): boolean {
  return files.has(database);
}

export function closeOrPark(database: SqliteDatabase & { readonly inTransaction?: unknown }): void {
  const file = files.get(database);
  const found = file === undefined ? null : look(file.name);
  if (file === undefined || found?.number !== file.number || database.inTransaction === true) {
    database.close();
    return;
  }
  const handle = new WeakRef(database);
  parked.set(file.number, [...(parked.get(file.number) ?? []), { handle, state: found.state }]);
}
