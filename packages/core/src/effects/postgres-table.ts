import { checkFlag, checkNames, type OptionNames } from "../protocol/check-names.ts";
import type { EffectsOptions } from "./effects.ts";
import { idNotStoredError } from "./errors.ts";
import { isTransactionAborted, textIn } from "./postgres-states.ts";
import { checkMilliseconds, checkTable } from "./table-options.ts";
import type { EffectInsertResult, InsertedEffect } from "./transaction.ts";

/** Options of the effects in PostgreSQL, for every client. */
export interface PostgresEffectsOptions extends EffectsOptions {
  /** The table, with its schema if necessary. Default `payhooks_effects`. */
  readonly table?: string | undefined;
  /** Makes the table at the start if it is missing. Default true. Use false if `payhooks migrate` makes it. */
  readonly createTable?: boolean | undefined;
  /** How long a transaction waits for a lock before it is repeated. Default 5 s. */
  readonly lockTimeoutMs?: number | undefined;
  /**
   * How long the function of `ctx.transaction` may leave its transaction idle before PostgreSQL ends it. If a process
   * freezes, the process that takes over its event has to wait for this long. Default 15 s.
   */
  readonly idleTimeoutMs?: number | undefined;
}

/** The names of these options. */
const OPTION_NAMES: OptionNames<PostgresEffectsOptions> = {
  table: true,
  createTable: true,
  lockTimeoutMs: true,
  idleTimeoutMs: true,
  scope: true,
  keepMs: true,
};

/** Runs one statement, and returns its rows. */
export type PostgresQuery = (sql: string, parameters: readonly string[]) => Promise<readonly unknown[]>;

/** The SQL that makes the table, for migrations of your own. */
export function postgresEffectsSql(table: string = "payhooks_effects"): readonly string[] {
  const name = checkTable(table);
  const [last = name] = name.split(".").slice(-1);
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (id text COLLATE "C" PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), done boolean NOT NULL DEFAULT false)`,
    `CREATE INDEX IF NOT EXISTS ${last.slice(0, 57)}_by_at ON ${name} (at)`,
  ];
}

/** The table of effects, with statements that any client can send. */
export class PostgresTable {
  /** Its name, as it is written in statements. */
  readonly name: string;
  /** The table is made at the start if it is missing. */
  readonly shouldCreate: boolean;
  readonly #lockTimeout: string;
  readonly #idleTimeout: string;

  /** Refuses options that do not exist. `owner` is the function that was given them, `further` are those of its own. */
  constructor(owner: string, options: PostgresEffectsOptions, further: Readonly<Record<string, true>> = {}) {
    checkNames(owner, options, { ...OPTION_NAMES, ...further });
    const {
      table = "payhooks_effects",
      createTable = true,
      lockTimeoutMs = 5_000,
      idleTimeoutMs = 15_000,
    } = options;
    checkFlag(`createTable of ${owner}`, createTable);
    this.name = checkTable(table);
    this.shouldCreate = createTable;
    this.#lockTimeout = checkMilliseconds("lockTimeoutMs", lockTimeoutMs);
    this.#idleTimeout = checkMilliseconds("idleTimeoutMs", idleTimeoutMs);
  }

  /**
   * Stores the id, and sets the timeouts of the transaction. If another transaction is storing the same id, waits until that
   * transaction has ended.
   */
  async insert(query: PostgresQuery, id: string, as: "begun" | "done"): Promise<EffectInsertResult> {
    const [row] = await query(
      `INSERT INTO ${this.name} (id, done) SELECT $1::text, $2::text::boolean
       WHERE set_config('lock_timeout', $3::text, true) <> ''
         AND set_config('idle_in_transaction_session_timeout', $4::text, true) <> ''
       ON CONFLICT (id) DO NOTHING RETURNING id, pg_current_xact_id()::text AS xid`,
      [id, String(as === "done"), this.#lockTimeout, this.#idleTimeout],
    );
    if (row !== undefined) {
      if (textIn(row, "id") !== id) throw idNotStoredError(this.name);
      return { found: "nothing", transaction: textIn(row, "xid") };
    }
    const state = await this.#stateOf(query, id);
    if (state === null) throw idNotStoredError(this.name);
    return { found: state };
  }

  /** False, and changes nothing, if this is no longer the transaction that stored the id. */
  async finish(query: PostgresQuery, id: string, { transaction = "" }: InsertedEffect): Promise<boolean> {
    const [row] = await query(
      `UPDATE ${this.name} SET done = true
       WHERE id = $1::text AND NOT done AND pg_current_xact_id_if_assigned()::text = $2::text RETURNING 1 AS one`,
      [id, transaction],
    );
    return row !== undefined;
  }

  /** True if the transaction that stored the id has ended, after a failure. It may roll back. */
  async hasEnded(query: PostgresQuery, id: string, { transaction }: InsertedEffect): Promise<boolean> {
    try {
      const [row] = await query("SELECT coalesce(pg_current_xact_id_if_assigned()::text, '') AS xid", []);
      return textIn(row, "xid") !== transaction;
    } catch (error) {
      // An aborted transaction does not show whether it is the one that stored the id. If it is another one, the id was
      // committed as begun.
      if (!isTransactionAborted(error)) throw error;
      await query("ROLLBACK", []);
      return (await this.#stateOf(query, id)) === "begun";
    }
  }

  async #stateOf(query: PostgresQuery, id: string): Promise<"begun" | "done" | null> {
    const [row] = await query(`SELECT done::text AS done FROM ${this.name} WHERE id = $1::text`, [id]);
    if (row === undefined) return null;
    return textIn(row, "done") === "true" ? "done" : "begun";
  }

  async prune(query: PostgresQuery, keepMs: number, limit: number): Promise<number> {
    const rows = await query(
      `DELETE FROM ${this.name} WHERE id IN (
         SELECT id FROM ${this.name} WHERE at < now() - $1::text::interval ORDER BY at LIMIT $2::text::int
       ) RETURNING 1 AS one`,
      [`${Math.ceil(keepMs / 1_000)} seconds`, String(limit)],
    );
    return rows.length;
  }
}
