/** The table of effects in MySQL and MariaDB, and the checks that it is suitable. */
import { errnoOf, isForbidden, isOutOfRoom, isReadOnly, isTableMissing } from "../mysql/failure.ts";
import { isPayhooksError, type PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { propertyOf, stringOf } from "../protocol/foreign-value.ts";
import { effectsUnsuitableError, idNotStoredError } from "./errors.ts";
import { checkTable } from "./table-options.ts";
import type { EffectInsertResult } from "./transaction.ts";

/** Runs one statement, and returns its rows, or how many it has changed. */
export type MysqlQuery = (
  sql: string,
  ...values: (string | number)[]
) => Promise<readonly unknown[] | { readonly affectedRows: number }>;

/** Runs statements in a transaction. It is rolled back if `work` rejects. */
export type Transact = <T>(work: (query: MysqlQuery) => Promise<T>) => Promise<T>;

/** The SQL that makes the table, for migrations of your own. */
export function mysqlEffectsSql(table: string = "payhooks_effects"): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${checkTable(table)} (id VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, at DATETIME NOT NULL, done BOOLEAN NOT NULL, KEY by_at (at)) ENGINE = InnoDB`,
  ];
}

/** The savepoint of the transaction while the effect is begun. It is gone when the transaction is. */
const SAVEPOINT_NAME = "payhooks_effect";

/** A key exists. */
const DUPLICATE_KEY_ERRNO = 1062;
const NO_SAVEPOINT_ERRNO = 1305;
/** A deadlock, a write elsewhere in a cluster, and in MariaDB a row that has changed since the transaction began. */
const COLLISION_ERRNOS: ReadonlySet<number | null> = new Set([1213, 3101, 1020]);
const LOCK_TIMEOUT_ERRNO = 1205;

/** The transaction has collided with another one, or waited too long for a lock. It may succeed at once. */
export function isMysqlRepeatable(error: unknown): boolean {
  return COLLISION_ERRNOS.has(errnoOf(error)) || errnoOf(error) === LOCK_TIMEOUT_ERRNO;
}

const UNREACHED_PATTERN =
  /^(?:E(?:CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|HOSTDOWN|NOENT)|PROTOCOL_\w+)$/;

/** The server could not be reached, had no room, or accepted no writes. */
export function isMysqlUnavailable(error: unknown): boolean {
  if (isReadOnly(error) || isOutOfRoom(error)) return true;
  return errnoOf(error) === null && UNREACHED_PATTERN.test(stringOf(propertyOf(error, "code")));
}

/** The table, with the statements on it. */
export class MysqlTable {
  readonly name: string;

  constructor(name: string) {
    this.name = checkTable(name);
  }

  /** Stores the id. If another transaction is storing the same id, waits until that transaction has ended. */
  async insert(query: MysqlQuery, id: string, as: "begun" | "done"): Promise<EffectInsertResult> {
    try {
      await query(
        `INSERT INTO ${this.name} (id, at, done) VALUES (?, UTC_TIMESTAMP(), ?)`,
        id,
        Number(as === "done"),
      );
    } catch (error) {
      // MySQL undoes the statement alone.
      if (errnoOf(error) !== DUPLICATE_KEY_ERRNO) throw error;
      return { found: await this.#stateOf(query, id) };
    }
    if (as === "begun") await query(`SAVEPOINT ${SAVEPOINT_NAME}`);
    return { found: "nothing" };
  }

  /**
   * The lock makes the statement read the data that is committed now, and not the data of the transaction's
   * beginning.
   */
  async #stateOf(query: MysqlQuery, id: string): Promise<"begun" | "done"> {
    const hasRow = async (where: string): Promise<boolean> =>
      this.#has(await query(`SELECT id FROM ${this.name} WHERE id = ? ${where} LOCK IN SHARE MODE`, id));
    if (await hasRow("AND done")) return "done";
    if (await hasRow("")) return "begun";
    throw idNotStoredError(this.name);
  }

  #has(answer: Awaited<ReturnType<MysqlQuery>>): boolean {
    return Array.isArray(answer) && answer.length > 0;
  }

  /** Rejects if this is no longer the transaction that stored the id: its savepoint is gone then. */
  async finish(query: MysqlQuery, id: string): Promise<boolean> {
    await query(`RELEASE SAVEPOINT ${SAVEPOINT_NAME}`);
    return (
      changedRowsOf(await query(`UPDATE ${this.name} SET done = TRUE WHERE id = ? AND NOT done`, id)) === 1
    );
  }

  /** True if the transaction that stored the id has ended, after a failure. A collision has ended it by itself. */
  async hasEnded(query: MysqlQuery, error: unknown): Promise<boolean> {
    if (COLLISION_ERRNOS.has(errnoOf(error))) return false;
    try {
      await query(`ROLLBACK TO SAVEPOINT ${SAVEPOINT_NAME}`);
      return false;
    } catch (savepointError) {
      if (errnoOf(savepointError) !== NO_SAVEPOINT_ERRNO) throw savepointError;
      return !(errnoOf(error) === LOCK_TIMEOUT_ERRNO && (await rollsBackAtTimeout(query)));
    }
  }

  async prune(query: MysqlQuery, keepMs: number, limit: number): Promise<number> {
    const old = "at < UTC_TIMESTAMP() - INTERVAL ? SECOND ORDER BY at LIMIT ?";
    return changedRowsOf(
      await query(`DELETE FROM ${this.name} WHERE ${old}`, Math.ceil(keepMs / 1_000), limit),
    );
  }

  /**
   * Makes the table if it is missing, then stores and completes an id, and rolls that back.
   *
   * @throws PayhooksError `ERR_EFFECTS_UNSUITABLE`; and the errors of a server that is away for now.
   */
  async open(transact: Transact, shouldCreate: boolean): Promise<void> {
    // Lower case only, so that the same id in upper case is another one.
    const id = `payhooks.probe.${crypto.randomUUID()}`.padEnd(255, "x");
    const find = `SELECT id FROM ${this.name} WHERE id = ?`;
    const undo = new Error("the probe of payhooks is rolled back");
    try {
      await transact((query) => this.#makeTable(query, shouldCreate));
      await transact(async (query) => {
        const { found } = await this.insert(query, id, "begun");
        if (found !== "nothing" || !(await this.finish(query, id))) throw idNotStoredError(this.name);
        if (this.#has(await query(find, id.toUpperCase()))) {
          throw effectsUnsuitableError(
            `${this.name} takes ids that differ in case for the same.`,
            this.#howToMake(),
          );
        }
        throw undo;
      }).catch((error: unknown) => {
        if (error !== undo) throw error;
      });
      const isLeft = await transact(async (query) => {
        const rows = await query(find, id);
        await query(`DELETE FROM ${this.name} WHERE id = ?`, id);
        return this.#has(rows);
      });
      if (isLeft) {
        throw effectsUnsuitableError(
          `The table ${this.name} cannot be rolled back.`,
          `Its engine has no transactions, and your own tables may have the same: ALTER TABLE ${this.name} ENGINE = InnoDB;`,
        );
      }
    } catch (error) {
      if (isPayhooksError(error) || isMysqlUnavailable(error)) throw error;
      throw this.#explainSetupError(error);
    }
  }

  async #makeTable(query: MysqlQuery, shouldCreate: boolean): Promise<void> {
    try {
      await query(`SELECT id FROM ${this.name} WHERE FALSE`);
    } catch (error) {
      if (errnoOf(error) !== 1146) throw error;
      if (!shouldCreate)
        throw effectsUnsuitableError(`The table ${this.name} is missing.`, this.#howToMake(), error);
      for (const statement of mysqlEffectsSql(this.name)) await query(statement);
    }
  }

  #explainSetupError(cause: unknown): PayhooksError | unknown {
    const errno = errnoOf(cause);
    if (errno === null) return cause;
    const setupError = (problem: string, fix: string): PayhooksError =>
      effectsUnsuitableError(`${problem} (${describeError(cause)}).`, fix, cause);
    if (errno === 1045 || errno === 1698) {
      return setupError(
        "MySQL refused the user or the password of the pool that effects were given",
        "Correct them in the settings of the pool.",
      );
    }
    if (errno === 1049 || errno === 1046) {
      return setupError(
        "The database of the pool that effects were given does not exist",
        "Correct its name.",
      );
    }
    if (isForbidden(cause)) {
      return setupError(
        `The user lacks a privilege on the table ${this.name}`,
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ${this.name} TO the user of the application. ${this.#howToMake()}`,
      );
    }
    if (errno === 1064) {
      return setupError(
        `The name ${this.name} cannot be used for a table`,
        "It may be a reserved word of SQL. Choose another with the option table.",
      );
    }
    const flaw = isTableMissing(cause) ? "lacks a column, or is missing" : "is not as effects need it";
    return setupError(
      `The table ${this.name} ${flaw}`,
      `Another program may have a table of this name, or the table may have a trigger or a further column. Choose another name with the option table. ${this.#howToMake()}`,
    );
  }

  #howToMake(): string {
    return `To make it, let a user who may create tables run what payhooks migrate --sql --for mysql prints: ${mysqlEffectsSql(this.name).join("; ")};`;
  }
}

/** True if the server is set to roll the whole transaction back when a lock is not free in time. */
async function rollsBackAtTimeout(query: MysqlQuery): Promise<boolean> {
  const answer = await query("SELECT 1 AS yes FROM DUAL WHERE @@innodb_rollback_on_timeout");
  return Array.isArray(answer) && answer.length > 0;
}

function changedRowsOf(answer: Awaited<ReturnType<MysqlQuery>>): number {
  return "affectedRows" in answer ? answer.affectedRows : 0;
}
