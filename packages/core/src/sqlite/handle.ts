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
