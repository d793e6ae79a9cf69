/**
 * Effects through Drizzle on PostgreSQL, with node-postgres or postgres.js below it: `drizzleEffects(db)`.
 *
 * @module
 */
import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { effects } from "./own-client.ts";
import { postgresClient } from "./postgres-binding.ts";
import { type PostgresEffectsOptions, PostgresTable } from "./postgres-table.ts";

export type { PostgresEffectsOptions } from "./postgres-table.ts";

/** A Drizzle database, or a transaction of it. */
export interface DrizzleQueries {
  /** Runs a statement. */
  execute(sql: string): PromiseLike<unknown>;
}

/** A Drizzle database. */
export interface DrizzleDatabase<Tx> extends DrizzleQueries {
  /** Runs `work` in a transaction. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
}

/**
 * Effects in PostgreSQL, through the application's own Drizzle database. `tx` is the transaction that `db.transaction`
 * provides.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be used.
 * @example createReceiver({ payments, inbox, effects: drizzleEffects(drizzle(pool)) })
 */
export function drizzleEffects<Tx extends DrizzleQueries>(
  db: DrizzleDatabase<Tx>,
  options: PostgresEffectsOptions = {},
): Effects<EffectContext<Tx>> {
  const table = new PostgresTable("drizzleEffects", options);
  return effects<Tx>(
    postgresClient<Tx, DrizzleQueries>(table, {
      transaction: (work) => db.transaction(work),
      outside: (use) => use(db),
      query: async (on, sql, parameters) => rowsOf(await on.execute(withLiterals(sql, parameters))),
    }),
    options,
  );
}

/** Texts of Payhooks that need no escaping: ids, numbers, names of tables. */
const PLAIN = /^[A-Za-z0-9_.:/~ -]*$/;

/** Writes parameters into the text. Drizzle takes parameters only through its own `sql`, which Payhooks does not have. */
function withLiterals(sql: string, parameters: readonly string[]): string {
  return sql.replace(/\$(\d)/g, (_, place: string) => {
    const text = parameters[Number(place) - 1] ?? "";
    if (!PLAIN.test(text)) throw new TypeError("a parameter cannot be written as a literal");
    return `'${text}'`;
  });
}

/** The rows of a result. node-postgres returns an object with rows, postgres.js the rows themselves. */
function rowsOf(result: unknown): readonly unknown[] {
  if (Array.isArray(result)) return result;
  const { rows } = result as { readonly rows?: readonly unknown[] };
  return rows ?? [];
}
