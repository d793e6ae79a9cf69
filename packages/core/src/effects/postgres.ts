/**
 * Effects through postgres.js: `postgresEffects(sql)`.
 *
 * @module
 */
import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { effects } from "./own-client.ts";
import { postgresClient } from "./postgres-binding.ts";
import { type PostgresEffectsOptions, PostgresTable } from "./postgres-table.ts";

export type { PostgresEffectsOptions } from "./postgres-table.ts";

/** A client of postgres.js, or a transaction of it. */
export interface PostgresJsQueries {
  /** Runs a statement. */
  unsafe(sql: string, parameters?: string[]): PromiseLike<readonly unknown[]>;
}

/**
 * A client of postgres.js. Both overloads of `begin` are listed, so that the transaction's type is inferred from the first one.
 */
export interface PostgresJs<Tx> extends PostgresJsQueries {
  /** Runs `work` in a transaction. */
  begin<T>(work: (tx: Tx) => T | Promise<T>): PromiseLike<unknown>;
  /** The same, with options of `BEGIN`. */
  begin<T>(options: string, work: (tx: Tx) => T | Promise<T>): PromiseLike<unknown>;
}

/**
 * Effects in PostgreSQL, through the application's own postgres.js client. `tx` is a `TransactionSql`.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be used.
 * @example createReceiver({ payments, inbox, effects: postgresEffects(postgres(process.env.DATABASE_URL)) })
 */
export function postgresEffects<Tx extends PostgresJsQueries>(
  sql: PostgresJs<Tx>,
  options: PostgresEffectsOptions = {},
): Effects<EffectContext<Tx>> {
  const table = new PostgresTable("postgresEffects", options);
  return effects<Tx>(
    postgresClient<Tx, PostgresJsQueries>(table, {
      transaction: async <T>(work: (tx: Tx) => Promise<T>) => (await sql.begin(work)) as T,
      outside: (use) => use(sql),
      query: async (on, text, parameters) => [...(await on.unsafe(text, [...parameters]))],
    }),
    options,
  );
}
