import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { SqliteDatabase } from "./handle.ts";
import { parkAtClose, unpark } from "./handle-cache.ts";

type Constructor = new (file: string) => SqliteDatabase;

interface Driver {
  load(): Promise<Constructor | undefined>;
  /** True if its handles keep their file open after they are closed. */
  readonly keepsFileOpen?: boolean;
}

/** The drivers in the order in which they are tried: those of the runtime, then the optional peers. */
const DRIVERS: readonly Driver[] = [
  { load: loadFromNode },
  { load: loadFromBun },
  { load: () => importPeer("libsql"), keepsFileOpen: true },
  { load: () => importPeer("better-sqlite3") },
];

async function loadFromNode(): Promise<Constructor | undefined> {
  const { getBuiltinModule } = process as { getBuiltinModule?: (name: string) => unknown };
  const builtin = getBuiltinModule?.("node:sqlite") as { DatabaseSync: Constructor } | undefined;
  return builtin?.DatabaseSync;
}

async function loadFromBun(): Promise<Constructor | undefined> {
  if (!("Bun" in globalThis)) return undefined;
  // A variable, so that bundlers do not try to resolve it.
  const name = "bun:sqlite";
  return ((await import(name)) as { Database: Constructor }).Database;
}

async function importPeer(name: string): Promise<Constructor | undefined> {
  try {
    return ((await import(name)) as { default: Constructor }).default;
  } catch (error) {
    if (isModuleMissing(error)) return undefined;
    throw error;
  }
}

/**
 * Opens a file with the first driver that is installed.
 *
 * @throws PayhooksError `ERR_PEER_MISSING` when there is none, `ERR_SQLITE_UNSUITABLE` when the file cannot be opened.
 */
export async function openDatabase(file: string): Promise<SqliteDatabase> {
  for (const { load, keepsFileOpen = false } of DRIVERS) {
    const Database = await load();
    if (Database === undefined) continue;
    try {
      const parkedHandle = keepsFileOpen ? unpark(file) : null;
      if (parkedHandle !== null) return parkedHandle;
      const database = new Database(file);
      if (keepsFileOpen) parkAtClose(file, database);
      return database;
    } catch (cause) {
      throw openFailedError(file, cause);
    }
  }
  throw new PayhooksError("ERR_PEER_MISSING", "sqliteInbox found no SQLite driver.", {
    fix: "Use Node 24 or Bun, which bring one, or install one: npm install libsql",
  });
}

/** Drivers do not say which file is missing; libsql says nothing at all. */
function openFailedError(file: string, cause: unknown): PayhooksError {
  const folder = dirname(resolve(file));
  const isUri = file.startsWith("file:");
  const isMissing = !isUri && !existsSync(folder);
  const driverText = describeError(cause);
  const reason = isMissing
    ? `its folder ${JSON.stringify(folder)} does not exist`
    : driverText === "Error"
      ? null
      : driverText;
  const fix = isMissing
    ? "Make the folder first: only the file is made at the start."
    : `Check that ${isUri ? "its folder exists, and that " : ""}this process may write there.`;
  return new PayhooksError(
    "ERR_SQLITE_UNSUITABLE",
    `${JSON.stringify(file)} cannot be opened${reason === null ? "" : `: ${reason}`}.`,
    {
      fix,
      cause,
    },
  );
}

function isModuleMissing(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}
