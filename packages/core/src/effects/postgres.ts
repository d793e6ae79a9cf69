/**
 * Effects through postgres.js: `postgresEffects(sql)`.
 *
 * @module
 */
import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { effects } from "./own-client.ts";
import { isRepeatable, type PostgresEffectsOptions, PostgresTable, type Query } from "./postgres-table.ts";

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
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be made.
 * @example createReceiver({ payments, inbox, effects: postgresEffects(postgres(process.env.DATABASE_URL)) })
 */
export function postgresEffects<Tx extends PostgresJsQueries>(
  sql: PostgresJs<Tx>,
  options: PostgresEffectsOptions = {},
): Effects<EffectContext<Tx>> {
  const table = new PostgresTable("postgresEffects", options);
  const queryOf =
    (one: PostgresJsQueries): Query =>
    async (text, parameters) => [...(await one.unsafe(text, [...parameters]))];
  return effects<Tx>(
    {
      transaction: async <T>(work: (tx: Tx) => Promise<T>) => (await sql.begin(work)) as T,
      insert: (tx, id) => table.insert(queryOf(tx), id),
      isIntact: (tx, inserted) => table.isIntact(queryOf(tx), inserted),
      isRepeatable,
      open: () => table.open(queryOf(sql)),
      prune: (keepMs, limit) => table.prune(queryOf(sql), keepMs, limit),
    },
    options,
  );
}
