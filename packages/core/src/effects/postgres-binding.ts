/** The transactions, the statements and the table of effects in PostgreSQL, for every client. */

import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { effects, type OwnClient } from "./own-client.ts";
import { isPostgresRepeatable, isPostgresUnavailable } from "./postgres-states.ts";
import { type PostgresEffectsOptions, type PostgresQuery, PostgresTable } from "./postgres-table.ts";
import { checkPostgresTable } from "./postgres-table-check.ts";

/** A client for PostgreSQL. `Queries` runs statements: a pool, for example, or a transaction. */
export interface PostgresBinding<Tx extends Queries, Queries> {
  /** The function that got the options, and the options that only this function has. */
  readonly owner: string;
  readonly extraOptions?: Readonly<Record<string, true>>;
  /** Like `transaction` of an own client. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Calls `use` with something that runs statements outside of a transaction. */
  withoutTransaction<T>(use: (on: Queries) => Promise<T>): Promise<T>;
  /** Runs one statement, and returns its rows. */
  query(on: Queries, sql: string, parameters: readonly string[]): Promise<readonly unknown[]>;
  readonly refused?: OwnClient<Tx>["refused"];
}

/** The effects of a client. Throws `ERR_OPTION_INVALID`. */
export function effectsThrough<Tx extends Queries, Queries>(
  { owner, extraOptions, transaction, withoutTransaction, query, refused }: PostgresBinding<Tx, Queries>,
  options: PostgresEffectsOptions,
): Effects<EffectContext<Tx>> {
  const table = new PostgresTable(owner, options, extraOptions);
  const queryOn =
    (queries: Queries): PostgresQuery =>
    (sql, parameters) =>
      query(queries, sql, parameters);
  const client: OwnClient<Tx> = {
    transaction,
    insert: (tx, id, as) => table.insert(queryOn(tx), id, as),
    finish: (tx, id, insertedEffect) => table.finish(queryOn(tx), id, insertedEffect),
    hasEnded: (tx, id, insertedEffect) => table.hasEnded(queryOn(tx), id, insertedEffect),
    isRepeatable: isPostgresRepeatable,
    isUnavailable: isPostgresUnavailable,
    ...(refused === undefined ? {} : { refused }),
    open: () =>
      checkPostgresTable(table, {
        withoutTransaction: (use) => withoutTransaction((queries) => use(queryOn(queries))),
        transaction: (work) => transaction((tx) => work(queryOn(tx))),
      }),
    prune: (keepMs, limit) => withoutTransaction((queries) => table.prune(queryOn(queries), keepMs, limit)),
  };
  return effects(client, options);
}
