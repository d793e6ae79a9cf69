/** A prepared statement of any of the drivers. */
export interface SqliteStatement {
  get(...parameters: readonly (string | number | null)[]): unknown;
  all(...parameters: readonly (string | number | null)[]): unknown[];
  run(...parameters: readonly (string | number | null)[]): unknown;
}

/**
 * A synchronous SQLite handle. `node:sqlite`, better-sqlite3, libsql and `bun:sqlite` all have this shape. Their types describe
 * a prepared statement in different ways, but it behaves the same.
 */
export interface SqliteHandle {
  /** Runs statements without parameters. */
  exec(sql: string): unknown;
  /** Prepares a statement, which has the methods `get`, `all` and `run`. */
  prepare(sql: string): unknown;
  /** Closes the handle. */
  close(): unknown;
}

/** A {@link SqliteHandle} with the types that this package uses. */
export interface SqliteDatabase extends SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}
