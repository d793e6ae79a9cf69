/**
 * Effects through Prisma on PostgreSQL: `prismaEffects(prisma)`.
 *
 * @module
 */
import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { effects } from "./own-client.ts";
import { isRepeatable, type PostgresEffectsOptions, PostgresTable, type Query } from "./postgres-table.ts";

export type { PostgresEffectsOptions } from "./postgres-table.ts";

/** A Prisma client, or a transaction of it. */
export interface PrismaQueries {
  /** Runs a statement, and answers its rows. */
  $queryRawUnsafe<T = unknown>(sql: string, ...parameters: unknown[]): PromiseLike<T>;
  /** Runs a statement, and answers how many rows it changed. */
  $executeRawUnsafe(sql: string, ...parameters: unknown[]): PromiseLike<number>;
}

/** A Prisma client. Both of its ways to open a transaction are named, so that its type is found in the second. */
export interface PrismaDatabase<Tx> extends PrismaQueries {
  /** Runs queries in a transaction. Not used. */
  $transaction(queries: never[], options?: never): Promise<unknown>;
  /** Runs `work` in a transaction. */
  $transaction<T>(work: (tx: Tx) => Promise<T>, options?: { maxWait?: number; timeout?: number }): Promise<T>;
}

/** Options of {@link prismaEffects}. */
export interface PrismaEffectsOptions extends PostgresEffectsOptions {
  /** How long one transaction may take, after which Prisma ends it; its own default is 5 s. Default 60 s. */
  readonly timeoutMs?: number | undefined;
  /** How long it may wait for a connection. Default 10 s. */
  readonly maxWaitMs?: number | undefined;
}

/**
 * Effects in PostgreSQL, through the Prisma client that the application has. `tx` is what `$transaction` gives.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` where the table cannot be made.
 * @example createReceiver({ payments, inbox, effects: prismaEffects(prisma) })
 */
export function prismaEffects<Tx extends PrismaQueries>(
  prisma: PrismaDatabase<Tx>,
  options: PrismaEffectsOptions = {},
): Effects<EffectContext<Tx>> {
  const { timeoutMs: timeout = 60_000, maxWaitMs: maxWait = 10_000 } = options;
  const table = new PostgresTable(options);
  const queryOf =
    (one: PrismaQueries): Query =>
    async (sql, parameters) => {
      if (!/^(?:SELECT|INSERT|DELETE)/.test(sql)) {
        await one.$executeRawUnsafe(sql, ...parameters);
        return [];
      }
      return one.$queryRawUnsafe<readonly unknown[]>(sql, ...parameters);
    };
  return effects<Tx>(
    {
      transaction: (work) => prisma.$transaction(work, { timeout, maxWait }),
      insert: (tx, id) => table.insert(queryOf(tx), id),
      isIntact: (tx, inserted) => table.isIntact(queryOf(tx), inserted),
      isRepeatable,
      open: () => table.open(queryOf(prisma)),
      prune: (keepMs, limit) => table.prune(queryOf(prisma), keepMs, limit),
    },
    options,
  );
}
