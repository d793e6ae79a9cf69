/** The table of effects in MySQL and MariaDB, and the checks that it is suitable. */
import { isForbidden, isMissing, isNoRoom, isReadOnly, numberOf } from "../mysql/failure.ts";
import { isPayhooksError, type PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { propertyOf, stringOf } from "../protocol/foreign-value.ts";
import { swallowedId, unsuitableEffects } from "./errors.ts";
import { checkTable } from "./table-options.ts";
import type { Stored } from "./transaction.ts";

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
const SAVEPOINT = "payhooks_effect";

/** A key exists. */
const DUPLICATE = 1062;
const NO_SAVEPOINT = 1305;
/** A deadlock, a write elsewhere in a cluster, and in MariaDB a row that has changed since the transaction began. */
const COLLISIONS: ReadonlySet<number | null> = new Set([1213, 3101, 1020]);
const LOCK_TIMEOUT = 1205;

/** The transaction has collided with another one, or waited too long for a lock. It may succeed at once. */
export function isMysqlRepeatable(error: unknown): boolean {
  return COLLISIONS.has(numberOf(error)) || numberOf(error) === LOCK_TIMEOUT;
}

const UNREACHED =
  /^(?:E(?:CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|HOSTDOWN|NOENT)|PROTOCOL_\w+)$/;

/** The server could not be reached, had no room, or accepted no writes. */
export function isMysqlUnavailable(error: unknown): boolean {
  if (isReadOnly(error) || isNoRoom(error)) return true;
  return numberOf(error) === null && UNREACHED.test(stringOf(propertyOf(error, "code")));
}

/** The table, with the statements on it. */
export class MysqlTable {
  readonly name: string;

  constructor(name: string) {
    this.name = checkTable(name);
  }

  /** Stores the id. If another transaction is storing the same id, waits until that transaction has ended. */
  async insert(query: MysqlQuery, id: string, as: "begun" | "done"): Promise<Stored> {
    try {
      await query(
        `INSERT INTO ${this.name} (id, at, done) VALUES (?, UTC_TIMESTAMP(), ?)`,
        id,
        Number(as === "done"),
      );
    } catch (error) {
      // MySQL undoes the statement alone.
      if (numberOf(error) !== DUPLICATE) throw error;
      return { found: await this.#stored(query, id) };
    }
    if (as === "begun") await query(`SAVEPOINT ${SAVEPOINT}`);
    return { found: "nothing" };
  }

  /**
   * The lock makes the statement read the data that is committed now, and not the data of the transaction's
   * beginning.
   */
  async #stored(query: MysqlQuery, id: string): Promise<"begun" | "done"> {
    const stored = async (where: string): Promise<boolean> =>
      this.#has(await query(`SELECT id FROM ${this.name} WHERE id = ? ${where} LOCK IN SHARE MODE`, id));
    if (await stored("AND done")) return "done";
    if (await stored("")) return "begun";
    throw swallowedId(this.name);
  }

  #has(answer: Awaited<ReturnType<MysqlQuery>>): boolean {
    return Array.isArray(answer) && answer.length > 0;
  }

  /** Rejects if this is no longer the transaction that stored the id: its savepoint is gone then. */
  async finish(query: MysqlQuery, id: string): Promise<boolean> {
    await query(`RELEASE SAVEPOINT ${SAVEPOINT}`);
    return changed(await query(`UPDATE ${this.name} SET done = TRUE WHERE id = ? AND NOT done`, id)) === 1;
  }

  /** True if the transaction that stored the id has ended, after a failure. A collision has ended it by itself. */
  async hasEnded(query: MysqlQuery, error: unknown): Promise<boolean> {
    if (COLLISIONS.has(numberOf(error))) return false;
    try {
      await query(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`);
      return false;
    } catch (missing) {
      if (numberOf(missing) !== NO_SAVEPOINT) throw missing;
      return !(numberOf(error) === LOCK_TIMEOUT && (await endsAtTimeout(query)));
    }
  }

  async prune(query: MysqlQuery, keepMs: number, limit: number): Promise<number> {
    const old = "at < UTC_TIMESTAMP() - INTERVAL ? SECOND ORDER BY at LIMIT ?";
    return changed(await query(`DELETE FROM ${this.name} WHERE ${old}`, Math.ceil(keepMs / 1_000), limit));
  }

  /**
   * Makes the table if it is missing, then stores and completes an id, and rolls that back.
   *
   * @throws PayhooksError `ERR_EFFECTS_UNSUITABLE`; and the errors of a server that is away for now.
   */
  async open(transact: Transact, isMade: boolean): Promise<void> {
    // Lower case only, so that the same id in upper case is another one.
    const id = `payhooks.probe.${crypto.randomUUID()}`.padEnd(255, "x");
    const find = `SELECT id FROM ${this.name} WHERE id = ?`;
    const undo = new Error("the probe of payhooks is rolled back");
    try {
      await transact((query) => this.#make(query, isMade));
      await transact(async (query) => {
        const { found } = await this.insert(query, id, "begun");
        if (found !== "nothing" || !(await this.finish(query, id))) throw swallowedId(this.name);
        if (this.#has(await query(find, id.toUpperCase()))) {
          throw unsuitableEffects(`${this.name} takes ids that differ in case for the same.`, this.#remake());
        }
        throw undo;
      }).catch((error: unknown) => {
        if (error !== undo) throw error;
      });
      const isLeft = await transact(async (query) => {
        const found = await query(find, id);
        await query(`DELETE FROM ${this.name} WHERE id = ?`, id);
        return this.#has(found);
      });
      if (isLeft) {
        throw unsuitableEffects(
          `The table ${this.name} cannot be rolled back.`,
          `Its engine has no transactions, and your own tables may have the same: ALTER TABLE ${this.name} ENGINE = InnoDB;`,
        );
      }
    } catch (error) {
      if (isPayhooksError(error) || isMysqlUnavailable(error)) throw error;
      throw this.#explained(error);
    }
  }

  async #make(query: MysqlQuery, isMade: boolean): Promise<void> {
    try {
      await query(`SELECT id FROM ${this.name} WHERE FALSE`);
    } catch (missing) {
      if (numberOf(missing) !== 1146) throw missing;
      if (!isMade) throw unsuitableEffects(`The table ${this.name} is missing.`, this.#remake(), missing);
      for (const statement of mysqlEffectsSql(this.name)) await query(statement);
    }
  }

  #explained(cause: unknown): PayhooksError | unknown {
    const number = numberOf(cause);
    if (number === null) return cause;
    const setupError = (what: string, fix: string): PayhooksError =>
      unsuitableEffects(`${what} (${describeError(cause)}).`, fix, cause);
    if (number === 1045 || number === 1698) {
      return setupError(
        "MySQL refused the user or the password of the pool that effects were given",
        "Correct them in the settings of the pool.",
      );
    }
    if (number === 1049 || number === 1046) {
      return setupError(
        "The database of the pool that effects were given does not exist",
        "Correct its name.",
      );
    }
    if (isForbidden(cause)) {
      return setupError(
        `The user lacks a privilege on the table ${this.name}`,
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ${this.name} TO the user of the application. ${this.#remake()}`,
      );
    }
    if (number === 1064) {
      return setupError(
        `The name ${this.name} cannot be used for a table`,
        "It may be a reserved word of SQL. Choose another with the option table.",
      );
    }
    const what = isMissing(cause) ? "lacks a column, or is missing" : "is not as effects need it";
    return setupError(
      `The table ${this.name} ${what}`,
      `Another program may have a table of this name, or the table may have a trigger or a further column. Choose another name with the option table. ${this.#remake()}`,
    );
  }

  #remake(): string {
    return `To make it, let a user who may create tables run what payhooks migrate --sql --for mysql prints: ${mysqlEffectsSql(this.name).join("; ")};`;
  }
}

/** True if the server is set to roll the whole transaction back when a lock is not free in time. */
async function endsAtTimeout(query: MysqlQuery): Promise<boolean> {
  const answer = await query("SELECT 1 AS yes FROM DUAL WHERE @@innodb_rollback_on_timeout");
  return Array.isArray(answer) && answer.length > 0;
}

function changed(answer: Awaited<ReturnType<MysqlQuery>>): number {
  return "affectedRows" in answer ? answer.affectedRows : 0;
}
