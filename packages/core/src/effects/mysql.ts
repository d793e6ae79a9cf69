/**
 * Effects in MySQL and MariaDB, through the pool that the application has: `mysqlEffects(pool)`.
 *
 * @module
 */
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { propertyOf } from "../protocol/foreign-value.ts";
import { systemClock } from "../time/clock.ts";
import { withTimeout } from "../time/with-timeout.ts";
import type { EffectContext } from "./context.ts";
import type { Effects, EffectsOptions } from "./effects.ts";
import { usedAfterEndError } from "./errors.ts";
import { isMysqlRepeatable, isMysqlUnavailable, type MysqlQuery, MysqlTable } from "./mysql-table.ts";
import { effects } from "./own-client.ts";
import { checkMilliseconds } from "./table-options.ts";

export { mysqlEffectsSql } from "./mysql-table.ts";

/** A `PoolConnection` of `mysql2/promise`. */
export interface MysqlConnection {
  /** Runs a statement. */
  query(statement: object): Promise<[unknown, unknown]>;
  /** Gives the connection back. */
  release(): void;
  /** Closes it. */
  destroy(): void;
}

/** A `Pool` of `mysql2/promise`. */
export interface MysqlEffectsPool<Connection> {
  /** Takes a connection from the pool. */
  getConnection(): Promise<Connection>;
}

/** Options of {@link mysqlEffects}. */
export interface MysqlEffectsOptions extends EffectsOptions {
  /** The table, with its database if necessary. Default `payhooks_effects`. */
  readonly table?: string | undefined;
  /** Makes the table at the start if it is missing. Default true. Use false if a migration makes it. */
  readonly createTable?: boolean | undefined;
  /** How long a transaction waits for a lock before it is repeated. Whole seconds are used. Default 5 s. */
  readonly lockTimeoutMs?: number | undefined;
  /**
   * How long the function of `ctx.transaction` may leave its connection idle before MySQL closes it. If a process freezes, the
   * process that takes over its event has to wait for this long. Whole seconds are used. Default 15 s.
   */
  readonly idleTimeoutMs?: number | undefined;
}

/** How long to wait for a rollback while another statement does not end. Then the connection is closed instead. */
const ROLLBACK_TIMEOUT_MS = 2_000;
/** How rows are read, whatever the options of the pool say. */
const ROW_OPTIONS = { rowsAsArray: false, nestTables: false, typeCast: true } as const;
/** The settings of a session that a transaction changes and then restores. */
const CHANGED_SETTINGS = ["autocommit", "innodb_lock_wait_timeout", "wait_timeout"] as const;

/**
 * Effects in MySQL or MariaDB, on InnoDB, through the application's own pool. A transaction takes one connection of it; `tx` is a
 * `PoolConnection`. Its isolation level is that of the pool's sessions.
 *
 * @param pool a pool of `mysql2/promise`; of a pool of `mysql2`, what `pool.promise()` returns.
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be used.
 * @example createReceiver({ payments, inbox: mysqlInbox(pool), effects: mysqlEffects(pool) })
 */
export function mysqlEffects<Connection extends MysqlConnection>(
  pool: MysqlEffectsPool<Connection>,
  options: MysqlEffectsOptions = {},
): Effects<EffectContext<Connection>> {
  checkNames("mysqlEffects", options, {
    table: true,
    createTable: true,
    lockTimeoutMs: true,
    idleTimeoutMs: true,
    scope: true,
    keepMs: true,
  });
  checkFlag("createTable of mysqlEffects", options.createTable);
  if (typeof propertyOf(pool, "promise") === "function") {
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      "mysqlEffects was given a pool of mysql2, which takes callbacks.",
      { fix: "Give it pool.promise(), or a pool of mysql2/promise." },
    );
  }
  const table = new MysqlTable(options.table ?? "payhooks_effects");
  const setupSql = transactionSetupSql(options);

  /**
   * If the program has left a transaction open on the connection, it is rolled back: it was never committed, and may
   * see old data. Then autocommit is switched off. A function may catch a deadlock, which ends the transaction, and
   * continue. Its later statements are then in another transaction, which is never committed.
   */
  async function transaction<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    const connection = await pool.getConnection();
    const query = queryOn(connection);
    let isRolledBack = false;
    try {
      await query("ROLLBACK");
      await query(setupSql);
      const value = await work(connection);
      await query("COMMIT");
      // It is committed, so nothing may fail from here.
      isRolledBack = await query(RESTORE_SETTINGS_SQL).then(
        () => true,
        () => false,
      );
      return value;
    } catch (error) {
      isRolledBack = !isMysqlUnavailable(error) && (await rollBack(query));
      throw error;
    } finally {
      if (isRolledBack) connection.release();
      else connection.destroy();
    }
  }

  return effects<Connection>(
    {
      transaction,
      insert: (tx, id, as) => table.insert(queryOn(tx), id, as),
      finish: (tx, id) => table.finish(queryOn(tx), id),
      hasEnded: (tx, _id, _stored, error) => table.hasEnded(queryOn(tx), error),
      isRepeatable: isMysqlRepeatable,
      isUnavailable: isMysqlUnavailable,
      refused: { release: usedAfterEndError, destroy: usedAfterEndError, end: usedAfterEndError },
      open: () => table.open((work) => transaction((tx) => work(queryOn(tx))), options.createTable ?? true),
      prune: (keepMs, limit) => transaction((tx) => table.prune(queryOn(tx), keepMs, limit)),
    },
    { scope: options.scope, keepMs: options.keepMs },
  );
}

/** Runs statements on a connection. */
function queryOn(connection: MysqlConnection): MysqlQuery {
  return async (sql, ...values) => {
    const [answer] = await connection.query({ ...ROW_OPTIONS, sql, values });
    return answer as Awaited<ReturnType<MysqlQuery>>;
  };
}

/** Remembers the settings of the session, and changes them. */
function transactionSetupSql({ lockTimeoutMs = 5_000, idleTimeoutMs = 15_000 }: MysqlEffectsOptions): string {
  const toSeconds = (option: string, ms: number): number =>
    Math.ceil(Number(checkMilliseconds(option, ms)) / 1_000);
  const savedSettings = CHANGED_SETTINGS.map((name) => `@payhooks_${name} = @@SESSION.${name}`);
  const lock = toSeconds("lockTimeoutMs", lockTimeoutMs);
  const idle = toSeconds("idleTimeoutMs", idleTimeoutMs);
  return `SET ${savedSettings.join(", ")}, SESSION autocommit = 0, SESSION innodb_lock_wait_timeout = ${lock}, SESSION wait_timeout = ${idle}`;
}

/** Restores the settings of the session. The transaction must have ended before that, because this would commit it. */
const RESTORE_SETTINGS_SQL = `SET ${CHANGED_SETTINGS.map((name) => `SESSION ${name} = @payhooks_${name}`).join(", ")}`;

function rollBack(query: MysqlQuery): Promise<boolean> {
  const undo = async (): Promise<boolean> => {
    await query("ROLLBACK");
    await query(RESTORE_SETTINGS_SQL);
    return true;
  };
  const timeoutError = (): Error => new Error("the rollback does not end");
  return withTimeout(systemClock, ROLLBACK_TIMEOUT_MS, undo, timeoutError).catch(() => false);
}
