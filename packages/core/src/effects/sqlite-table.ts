/** The table of effects in SQLite, on one handle. */
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { errorTextOf, isBusy, isFull } from "../sqlite/failure.ts";
import type { SqliteHandle, SqliteStatement } from "../sqlite/handle.ts";
import { APPLICATION_ID } from "../sqlite/schema.ts";
import { databaseUnavailableError, effectsUnsuitableError, idNotStoredError } from "./errors.ts";
import { checkTable } from "./table-options.ts";
import type { EffectInsertResult } from "./transaction.ts";

/** The SQL that makes the table, for migrations of your own. */
export function sqliteEffectsSql(table: string = "payhooks_effects"): readonly string[] {
  const name = checkTable(table);
  const [last = name] = name.split(".").slice(-1);
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (id TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS ${name}_by_at ON ${last} (at)`,
  ];
}

/** The table, with the statements on it. */
export class SqliteTable {
  readonly #handle: SqliteHandle;
  readonly name: string;

  constructor(handle: SqliteHandle, name: string) {
    this.#handle = handle;
    this.name = checkTable(name);
  }

  /** Stores the id. Must be called in a transaction. */
  insert(id: string, as: "begun" | "done"): EffectInsertResult {
    const sql = `INSERT INTO ${this.name} (id, at, done) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`;
    if (this.#runChange(sql, id, Date.now(), as === "done" ? 1 : 0) === 1) return { found: "nothing" };
    const state = this.stateOf(id);
    if (state === null) throw idNotStoredError(this.name);
    return { found: state };
  }

  /** Makes the id `done`. Throws if it is not there as `begun`. */
  finish(id: string): void {
    const sql = `UPDATE ${this.name} SET done = 1 WHERE id = ? AND done = 0`;
    if (this.#runChange(sql, id) !== 1) throw idNotStoredError(this.name);
  }

  /** The state with which the id is stored; null if it is not stored. */
  stateOf(id: string): "begun" | "done" | null {
    const row = this.#prepare(`SELECT done FROM ${this.name} WHERE id = ?`).get(id);
    if (row === undefined || row === null) return null;
    return Number((row as { readonly done: unknown }).done) === 1 ? "done" : "begun";
  }

  /** Deletes up to `limit` ids that were stored before this time, and returns how many. */
  prune(before: number, limit: number): number {
    const old = `SELECT id FROM ${this.name} WHERE at < ? ORDER BY at LIMIT ${limit}`;
    return this.#runChange(`DELETE FROM ${this.name} WHERE id IN (${old})`, before);
  }

  /**
   * Makes the table if it is missing, then stores an id, completes and deletes it, and rolls that back.
   *
   * @throws PayhooksError `ERR_EFFECTS_UNSUITABLE`, `ERR_EFFECTS_UNAVAILABLE`; and the error of a busy file.
   */
  open(): void {
    const row = this.#prepare("PRAGMA application_id").get() as Record<string, unknown> | undefined;
    if (Number(Object.values(row ?? {})[0]) === APPLICATION_ID) {
      throw effectsUnsuitableError(
        "The file is that of the inbox.",
        "Use your application's own file, where an effect is committed together with your rows.",
      );
    }
    try {
      for (const statement of sqliteEffectsSql(this.name)) this.#handle.exec(statement);
      this.#tryOut();
    } catch (error) {
      if (isBusy(error) || isPayhooksError(error)) throw error;
      throw isDiskFailure(error) ? databaseUnavailableError(error) : tableUnusableError(this.name, error);
    }
  }

  #tryOut(): void {
    // Lower case only, so that the same id in upper case is another one.
    const id = `payhooks.probe.${crypto.randomUUID()}`.padEnd(255, "x");
    beginImmediate(this.#handle);
    try {
      this.insert(id, "begun");
      this.finish(id);
      if (this.stateOf(id.toUpperCase()) !== null) {
        throw effectsUnsuitableError(
          `The table ${this.name} takes ids that differ in case for the same.`,
          "Make it anew, without COLLATE NOCASE.",
        );
      }
      this.#runChange(`DELETE FROM ${this.name} WHERE id = ?`, id);
    } finally {
      rollBack(this.#handle);
    }
  }

  #prepare(sql: string): SqliteStatement {
    return this.#handle.prepare(sql) as SqliteStatement;
  }

  #runChange(sql: string, ...values: (string | number)[]): number {
    const { changes } = this.#prepare(sql).run(...values) as { readonly changes: number | bigint };
    return Number(changes);
  }
}

/** Keeps every other process from writing. */
export function beginImmediate(handle: SqliteHandle): void {
  try {
    handle.exec("BEGIN IMMEDIATE");
  } catch (error) {
    if (isBusy(error) || !/within a transaction/i.test(errorTextOf(error))) throw error;
    throw new PayhooksError("ERR_EFFECT_TRANSACTION", "The handle is in a transaction already.", {
      fix: "Give effects a handle of their own, or call ctx.claimEffect(tx) inside your transaction.",
      cause: error,
    });
  }
}

export function rollBack(handle: SqliteHandle): void {
  try {
    handle.exec("ROLLBACK");
  } catch {
    // There is no transaction any more.
  }
}

/** The disk is full, or does not answer. */
function isDiskFailure(error: unknown): boolean {
  return isFull(error) || /SQLITE_IOERR|disk I\/O error/i.test(errorTextOf(error));
}

/** The file accepts no writes now. */
export function isWriteRefused(error: unknown): boolean {
  return isDiskFailure(error) || /SQLITE_READONLY|readonly database/i.test(errorTextOf(error));
}

function tableUnusableError(table: string, cause: unknown): PayhooksError {
  return effectsUnsuitableError(
    `The table ${table} cannot be made, or is not as effects need it: ${describeError(cause)}.`,
    `Check that this process may write to the file and its folder. Another program may have a table of this name, or the table may have a trigger. Choose another name with the option table, or make it anew: ${sqliteEffectsSql(table).join("; ")};`,
    cause,
  );
}
