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
interface ParkedHandle {
  readonly handle: WeakRef<SqliteDatabase>;
  /**
   * The state of the file when the handle was parked. The handle would not notice changes that something other than SQLite has
   * made.
   */
  readonly state: string;
}

const parkedHandles = new Map<FileNumber, ParkedHandle[]>();
const fileOfHandle = new WeakMap<SqliteDatabase, { readonly name: string; readonly number: FileNumber }>();
const handleFinalizer = new FinalizationRegistry<FileNumber>(dropCollected);

function statFile(name: string): { readonly number: FileNumber; readonly state: string } | null {
  const stats: BigIntStats | undefined = statSync(name, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return null;
  return { number: `${stats.dev}:${stats.ino}`, state: `${stats.size}:${stats.mtimeNs}` };
}

function dropCollected(number: FileNumber): void {
  const rest = (parkedHandles.get(number) ?? []).filter(({ handle }) => handle.deref() !== undefined);
  if (rest.length > 0) parkedHandles.set(number, rest);
  else parkedHandles.delete(number);
}

/** A parked handle of exactly this file; null if there is none. */
export function unpark(name: string): SqliteDatabase | null {
  const file = statFile(name);
  if (file === null) return null;
  const handles = parkedHandles.get(file.number) ?? [];
  for (let parkedHandle = handles.pop(); parkedHandle !== undefined; parkedHandle = handles.pop()) {
    const database = parkedHandle.handle.deref();
    if (database !== undefined && parkedHandle.state === file.state) return database;
  }
  parkedHandles.delete(file.number);
  return null;
}

/** Marks a new handle, so that it is parked when it is closed. */
export function parkAtClose(name: string, database: SqliteDatabase): void {
  const file = statFile(name);
  if (file === null) return;
  fileOfHandle.set(database, { name, number: file.number });
  handleFinalizer.register(database, file.number);
}

/** True if a handle keeps its file open after it is closed. */
export function keepsFileOpen(database: SqliteDatabase): boolean {
  return fileOfHandle.has(database);
}

export function closeOrPark(database: SqliteDatabase & { readonly inTransaction?: unknown }): void {
  const file = fileOfHandle.get(database);
  const currentFile = file === undefined ? null : statFile(file.name);
  if (file === undefined || currentFile?.number !== file.number || database.inTransaction === true) {
    database.close();
    return;
  }
  const handle = new WeakRef(database);
  parkedHandles.set(file.number, [
    ...(parkedHandles.get(file.number) ?? []),
    { handle, state: currentFile.state },
  ]);
}
