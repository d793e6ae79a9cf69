import { PayhooksError } from "../errors.ts";
import { describeError } from "../foreign-error.ts";

/** A prepared statement of any of the drivers. */
export interface SqliteStatement {
  get(...parameters: readonly (string | number | null)[]): unknown;
  all(...parameters: readonly (string | number | null)[]): unknown[];
  run(...parameters: readonly (string | number | null)[]): unknown;
}

/**
 * A synchronous SQLite handle: `node:sqlite`, better-sqlite3, libsql and `bun:sqlite` all have this shape. What their
 * types say of a prepared statement differs; what it does, does not.
 */
export interface SqliteHandle {
  /** Runs statements without parameters. */
  exec(sql: string): unknown;
  /** Answers a statement with `get`, `all` and `run`. */
  prepare(sql: string): unknown;
  /** Closes the handle. */
  close(): unknown;
}

/** The same, as it is used. */
export interface SqliteDatabase extends SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

type Constructor = new (file: string) => SqliteDatabase;

/** The drivers in the order in which they are tried: what the runtime brings, then the optional peers. */
const DRIVERS: readonly (() => Promise<Constructor | undefined>)[] = [
  async () => {
    const { getBuiltinModule } = process as { getBuiltinModule?: (name: string) => unknown };
    const builtin = getBuiltinModule?.("node:sqlite") as { DatabaseSync: Constructor } | undefined;
    return builtin?.DatabaseSync;
  },
  async () => {
    if (!("Bun" in globalThis)) return undefined;
    // A variable, so that bundlers do not look for it.
    const name = "bun:sqlite";
    return ((await import(name)) as { Database: Constructor }).Database;
  },
  () => importPeer("libsql"),
  () => importPeer("better-sqlite3"),
];

async function importPeer(name: string): Promise<Constructor | undefined> {
  try {
    return ((await import(name)) as { default: Constructor }).default;
  } catch (error) {
    if (isModuleMissing(error)) return undefined;
    throw error;
  }
}

/**
 * Opens a file with the first driver that is there.
 *
 * @throws PayhooksError `ERR_PEER_MISSING` when there is none, `ERR_SQLITE_UNSUITABLE` when the file cannot be opened.
 */
export async function openDatabase(file: string): Promise<SqliteDatabase> {
  for (const load of DRIVERS) {
    const Database = await load();
    if (Database === undefined) continue;
    try {
      return new Database(file);
    } catch (cause) {
      throw new PayhooksError(
        "ERR_SQLITE_UNSUITABLE",
        `${JSON.stringify(file)} cannot be opened: ${describeError(cause)}.`,
        {
          fix: "Does its folder exist, and may this process write there?",
          cause,
        },
      );
    }
  }
  throw new PayhooksError("ERR_PEER_MISSING", "sqliteInbox found no SQLite driver.", {
    fix: "Use Node 24 or Bun, which bring one, or install one: npm install libsql",
  });
}

function isModuleMissing(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}
