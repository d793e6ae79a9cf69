import { type BigIntStats, statSync } from "node:fs";
import type { SqliteDatabase } from "./handle.ts";

/*
 * libsql has no way to end a prepared statement, and a handle keeps its file open until all of its statements are collected,
 * however often it is closed. So that no file stays open for each time that one is opened, such a handle is not thrown away
 * but parked: whoever opens the same file next is given it. Nobody else keeps it, so that it may be collected.
 */

/** A file as the system knows it, whatever its name is: nobody else gets its number while a handle has it open. */
type FileNumber = string;

/** A handle that nobody uses. */
interface Parked {
  readonly handle: WeakRef<SqliteDatabase>;
  /** What the file was like then: what has been changed by others than SQLite, the handle would not notice. */
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

/** A handle on this very file that nobody uses; null where there is none. */
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

/** Says of a new handle that its close is to park it. */
export function parkAtClose(name: string, database: SqliteDatabase): void {
  const file = look(name);
  if (file === null) return;
  files.set(database, { name, number: file.number });
  collected.register(database, file.number);
}

/** Closes a handle, or parks it. */
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
