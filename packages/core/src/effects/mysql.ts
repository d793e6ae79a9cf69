/**
 * Effects in MySQL and MariaDB, through the pool that the application has: `mysqlEffects(pool)`.
 *
 * @module
 */
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { propertyOf } from "../protocol/foreign-value.ts";
import { systemClock } from "../time/clock.ts";
import { inTime } from "../time/in-time.ts";
import type { EffectContext } from "./context.ts";
import type { Effects, EffectsOptions } from "./effects.ts";
import { usedAfterEnd } from "./errors.ts";
import { isMysqlRepeatable, isMysqlUnavailable, type MysqlQuery, MysqlTable } from "./mysql-table.ts";
import { effects } from "./own-client.ts";
import { milliseconds } from "./table-options.ts";

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
const ROLLBACK_WITHIN_MS = 2_000;
/** How rows are read, whatever the options of the pool say. */
const READING = { rowsAsArray: false, nestTables: false, typeCast: true } as const;
/** The settings of a session that a transaction changes and then restores. */
const CHANGED = ["autocommit", "innodb_lock_wait_timeout", "wait_timeout"] as const;

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
  const begin = beginning(options);

  /**
   * If the program has left a transaction open on the connection, it is rolled back: it was never committed, and may
   * see old data. Then autocommit is switched off. A function may catch a deadlock, which ends the transaction, and
   * continue. Its later statements are then in another transaction, which is never committed.
   */
  async function transaction<T>(work: (tx: Connection) => Promise<T>): Promise<T> {
    const connection = await pool.getConnection();
    const query = on(connection);
    let isRolledBack = false;
    try {
      await query("ROLLBACK");
      await query(begin);
      const value = await work(connection);
      await query("COMMIT");
      // It is committed, so nothing may fail from here.
      isRolledBack = await query(END).then(
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
      insert: (tx, id, as) => table.insert(on(tx), id, as),
      finish: (tx, id) => table.finish(on(tx), id),
      hasEnded: (tx, _id, _stored, error) => table.hasEnded(on(tx), error),
      isRepeatable: isMysqlRepeatable,
      isUnavailable: isMysqlUnavailable,
      refused: { release: usedAfterEnd, destroy: usedAfterEnd, end: usedAfterEnd },
      open: () => table.open((work) => transaction((tx) => work(on(tx))), options.createTable ?? true),
      prune: (keepMs, limit) => transaction((tx) => table.prune(on(tx), keepMs, limit)),
    },
    { scope: options.scope, keepMs: options.keepMs },
  );
}

/** Runs statements on a connection. */
function on(connection: MysqlConnection): MysqlQuery {
  return async (sql, ...values) => {
    const [answer] = await connection.query({ ...READING, sql, values });
    return answer as Awaited<ReturnType<MysqlQuery>>;
  };
}

/** Remembers the settings of the session, and changes them. */
function beginning({ lockTimeoutMs = 5_000, idleTimeoutMs = 15_000 }: MysqlEffectsOptions): string {
  const seconds = (option: string, ms: number): number => Math.ceil(Number(milliseconds(option, ms)) / 1_000);
  const kept = CHANGED.map((name) => `@payhooks_${name} = @@SESSION.${name}`);
  const lock = seconds("lockTimeoutMs", lockTimeoutMs);
  const idle = seconds("idleTimeoutMs", idleTimeoutMs);
  return `SET ${kept.join(", ")}, SESSION autocommit = 0, SESSION innodb_lock_wait_timeout = ${lock}, SESSION wait_timeout = ${idle}`;
}

/** Restores the settings of the session. The transaction must have ended before that, because this would commit it. */
const END = `SET ${CHANGED.map((name) => `SESSION ${name} = @payhooks_${name}`).join(", ")}`;

function rollBack(query: MysqlQuery): Promise<boolean> {
  const undo = async (): Promise<boolean> => {
    await query("ROLLBACK");
    await query(END);
    return true;
  };
  const late = (): Error => new Error("the rollback does not end");
  return inTime(systemClock, ROLLBACK_WITHIN_MS, undo, late).catch(() => false);
}
