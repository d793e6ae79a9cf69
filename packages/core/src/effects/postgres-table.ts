import { checkNames, type OptionNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import type { EffectsOptions } from "./effects.ts";
import { unsuitableEffects } from "./errors.ts";

/** Options of the effects in PostgreSQL, whatever the client is. */
export interface PostgresEffectsOptions extends EffectsOptions {
  /** The table, with its schema if necessary. Default `payhooks_effects`. */
  readonly table?: string | undefined;
  /** Makes the table at the start if it is missing. Default true. Use false if `payhooks migrate` makes it. */
  readonly createTable?: boolean | undefined;
  /** How long a transaction waits for a lock before it is repeated. Default 5 s. */
  readonly lockTimeoutMs?: number | undefined;
  /**
   * How long the function of `ctx.transaction` may leave its transaction idle before PostgreSQL ends it. If a process freezes,
   * the one that takes over its event has to wait for this long. Default 15 s.
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
export type Query = (sql: string, parameters: readonly string[]) => Promise<readonly unknown[]>;

const TABLE = /^[A-Za-z_][A-Za-z0-9_]{0,62}(?:\.[A-Za-z_][A-Za-z0-9_]{0,62})?$/;

/** Checks that a name needs no quotes. Throws `ERR_OPTION_INVALID`. */
export function checkTable(table: string): string {
  if (TABLE.test(table)) return table;
  throw new PayhooksError("ERR_OPTION_INVALID", `table is ${JSON.stringify(String(table).slice(0, 80))}.`, {
    fix: 'Use a name such as "payhooks_effects" or "shop.payhooks_effects".',
  });
}

/** The SQL that makes the table, for migrations of your own. */
export function postgresEffectsSql(table: string = "payhooks_effects"): readonly string[] {
  const name = checkTable(table);
  const [last = name] = name.split(".").slice(-1);
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (id text COLLATE "C" PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`,
    `CREATE INDEX IF NOT EXISTS ${last.slice(0, 57)}_by_at ON ${name} (at)`,
  ];
}

/** The table of effects, with statements that any client can send. */
export class PostgresTable {
  readonly #name: string;
  readonly #createTable: boolean;
  readonly #lockTimeout: string;
  readonly #idleTimeout: string;

  /** Refuses options that do not exist. `of` is the function that was given them, `further` are those of its own. */
  constructor(of: string, options: PostgresEffectsOptions, further: Readonly<Record<string, true>> = {}) {
    checkNames(of, options, { ...OPTION_NAMES, ...further });
    const {
      table = "payhooks_effects",
      createTable = true,
      lockTimeoutMs = 5_000,
      idleTimeoutMs = 15_000,
    } = options;
    this.#name = checkTable(table);
    this.#createTable = createTable;
    this.#lockTimeout = milliseconds("lockTimeoutMs", lockTimeoutMs);
    this.#idleTimeout = milliseconds("idleTimeoutMs", idleTimeoutMs);
  }

  /**
   * Stores the id, and returns the id of the transaction; false if the id was stored already. Sets the timeouts of the
   * transaction.
   */
  async insert(query: Query, id: string): Promise<string | false> {
    const [row] = await query(
      `INSERT INTO ${this.#name} (id) SELECT $1::text
       WHERE set_config('lock_timeout', $2::text, true) <> ''
         AND set_config('idle_in_transaction_session_timeout', $3::text, true) <> ''
       ON CONFLICT (id) DO NOTHING RETURNING pg_current_xact_id()::text AS xid`,
      [id, this.#lockTimeout, this.#idleTimeout],
    );
    return row === undefined ? false : textIn(row, "xid");
  }

  /** False, or a rejection, if this is no longer the transaction that stored the id. */
  async isIntact(query: Query, inserted: true | string): Promise<boolean> {
    const [row] = await query("SELECT coalesce(pg_current_xact_id_if_assigned()::text, '') AS xid", []);
    return textIn(row, "xid") === inserted;
  }

  async open(query: Query): Promise<void> {
    if (await this.#exists(query)) return;
    const statements = postgresEffectsSql(this.#name);
    const run = `Run payhooks migrate, or: ${statements.join("; ")};`;
    if (!this.#createTable) throw unsuitableEffects(`The table ${this.#name} is missing.`, run);
    try {
      for (const statement of statements) await query(statement, []);
    } catch (cause) {
      // Another process was faster. IF NOT EXISTS can still fail if two processes use it at the same time.
      if (await this.#exists(query)) return;
      if (!isPermanent(cause)) throw cause;
      throw unsuitableEffects(`The table ${this.#name} cannot be made: ${describeError(cause)}.`, run, cause);
    }
  }

  async prune(query: Query, keepMs: number, limit: number): Promise<number> {
    const rows = await query(
      `DELETE FROM ${this.#name} WHERE id IN (
         SELECT id FROM ${this.#name} WHERE at < now() - $1::text::interval ORDER BY at LIMIT $2::text::int
       ) RETURNING 1 AS one`,
      [`${Math.ceil(keepMs / 1_000)} seconds`, String(limit)],
    );
    return rows.length;
  }

  async #exists(query: Query): Promise<boolean> {
    const [row] = await query("SELECT coalesce(to_regclass($1::text)::text, '') AS found", [this.#name]);
    return textIn(row, "found") !== "";
  }
}

/** The SQLSTATEs of an error and its causes. Some clients put them elsewhere. */
function statesOf(error: unknown): readonly string[] {
  const states: string[] = [];
  for (let one: unknown = error, depth = 0; isObject(one) && depth < 5; one = one.cause, depth++) {
    const { code, meta } = one;
    if (typeof code === "string") states.push(code);
    if (!isObject(meta)) continue;
    const { code: inMeta, driverAdapterError: adapter } = meta;
    if (typeof inMeta === "string") states.push(inMeta);
    if (isObject(adapter) && isObject(adapter.cause)) {
      const { originalCode, kind } = adapter.cause;
      if (typeof originalCode === "string") states.push(originalCode);
      if (kind === "TransactionWriteConflict") states.push("40001");
    }
  }
  return states;
}

/**
 * Serialization failure, deadlock, lock timeout, idle-in-transaction timeout. P2034 is Prisma's code for the first two, and
 * CONNECTION_CLOSED is the code of postgres.js for the last. If the transaction was committed after all, the next attempt finds
 * its id.
 */
const REPEATABLE: ReadonlySet<string> = new Set([
  "40001",
  "40P01",
  "55P03",
  "25P03",
  "P2034",
  "CONNECTION_CLOSED",
]);

export function isRepeatable(error: unknown): boolean {
  return statesOf(error).some((state) => REPEATABLE.has(state));
}

/** No permission, or no such schema. It will be the same the next time. */
function isPermanent(error: unknown): boolean {
  return statesOf(error).some((state) => /^(?:42|3F)/.test(state));
}

function milliseconds(option: string, value: number): string {
  if (Number.isSafeInteger(value) && value > 0) return String(value);
  throw new PayhooksError(
    "ERR_OPTION_INVALID",
    `${option} is ${String(value)}, not a whole number above zero.`,
    { fix: "Leave it out for the default." },
  );
}

function textIn(row: unknown, column: string): string {
  return isObject(row) ? String(row[column] ?? "") : "";
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
