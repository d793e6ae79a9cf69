import type { SqliteDatabase } from "../sqlite/handle.ts";

/** The part of a Durable Object's `ctx.storage` that the inbox uses. The object's class has to be one with SQLite storage. */
export interface ObjectStorage {
  readonly sql: {
    /** Runs statements; the bindings are those of the last one. */
    exec(query: string, ...bindings: readonly (string | number | null)[]): { toArray(): unknown[] };
  };
  /** Runs `work`, and undoes what it has written if it throws. */
  transactionSync<T>(work: () => T): T;
  /** Has the platform call the object's `alarm()` at this time, instead of the time that was set before. */
  setAlarm(scheduledTime: number): Promise<void>;
  /** Takes the alarm away. */
  deleteAlarm(): Promise<void>;
}

/** The object's database as a handle. The platform keeps a prepared statement for each text, and closes the database itself. */
export function databaseOf({ sql }: ObjectStorage): SqliteDatabase {
  return {
    exec: (text) => sql.exec(text),
    prepare: (text) => ({
      get: (...parameters) => sql.exec(text, ...parameters).toArray()[0],
      all: (...parameters) => sql.exec(text, ...parameters).toArray(),
      run: (...parameters) => sql.exec(text, ...parameters),
    }),
    close() {},
  };
}
