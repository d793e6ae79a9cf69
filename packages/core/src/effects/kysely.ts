/**
 * Effects through Kysely on PostgreSQL: `kyselyEffects(db)`.
 *
 * @module
 */
import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { effects } from "./own-client.ts";
import { postgresClient } from "./postgres-binding.ts";
import { type PostgresEffectsOptions, PostgresTable } from "./postgres-table.ts";

export type { PostgresEffectsOptions } from "./postgres-table.ts";

/** A compiled query of Kysely. */
export interface KyselyQuery {
  readonly query: { readonly kind: "RawNode"; readonly sqlFragments: string[]; readonly parameters: never[] };
  readonly queryId: { readonly queryId: string };
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

/** A Kysely database, or a transaction of it. */
export interface KyselyQueries {
  /** Runs a statement. */
  executeQuery(query: KyselyQuery): Promise<{ readonly rows: unknown[] }>;
}

/** A Kysely database. */
export interface KyselyDatabase<Tx> extends KyselyQueries {
  /** Returns an object whose `execute` runs `work` in a transaction. */
  transaction(): { execute<T>(work: (tx: Tx) => Promise<T>): Promise<T> };
}

/**
 * Effects in PostgreSQL, through the application's own Kysely database. `tx` is a `Transaction<DB>`.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be used.
 * @example createReceiver({ payments, inbox, effects: kyselyEffects(db) })
 */
export function kyselyEffects<Tx extends KyselyQueries>(
  db: KyselyDatabase<Tx>,
  options: PostgresEffectsOptions = {},
): Effects<EffectContext<Tx>> {
  const table = new PostgresTable("kyselyEffects", options);
  return effects<Tx>(
    postgresClient<Tx, KyselyQueries>(table, {
      transaction: (work) => db.transaction().execute(work),
      outside: (use) => use(db),
      query: async (on, sql, parameters) => (await on.executeQuery(compiled(sql, parameters))).rows,
    }),
    options,
  );
}

/** A query like those of Kysely's `CompiledQuery.raw`, which Payhooks does not have. */
function compiled(sql: string, parameters: readonly string[]): KyselyQuery {
  return {
    query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
    queryId: { queryId: "payhooks" },
    sql,
    parameters,
  };
}
