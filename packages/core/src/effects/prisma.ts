/**
 * Effects through Prisma on PostgreSQL: `prismaEffects(prisma)`.
 *
 * @module
 */
import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { effects } from "./own-client.ts";
import { postgresClient } from "./postgres-binding.ts";
import { type PostgresEffectsOptions, PostgresTable } from "./postgres-table.ts";

export type { PostgresEffectsOptions } from "./postgres-table.ts";

/** A Prisma client, or a transaction of it. */
export interface PrismaQueries {
  /** Runs a statement, and returns its rows. */
  $queryRawUnsafe<T = unknown>(sql: string, ...parameters: unknown[]): PromiseLike<T>;
  /** Runs a statement, and returns how many rows it changed. */
  $executeRawUnsafe(sql: string, ...parameters: unknown[]): PromiseLike<number>;
}

/**
 * A Prisma client. Both overloads of `$transaction` are listed, so that the transaction's type is inferred from the second one.
 */
export interface PrismaDatabase<Tx> extends PrismaQueries {
  /** Runs queries in a transaction. Not used. */
  $transaction(queries: never[], options?: never): Promise<unknown>;
  /** Runs `work` in a transaction. */
  $transaction<T>(work: (tx: Tx) => Promise<T>, options?: { maxWait?: number; timeout?: number }): Promise<T>;
}

/** Options of {@link prismaEffects}. */
export interface PrismaEffectsOptions extends PostgresEffectsOptions {
  /** How long a transaction may take before Prisma ends it. Default 60 s (Prisma's own default is 5 s). */
  readonly timeoutMs?: number | undefined;
  /** How long a transaction may wait for a connection. Default 10 s. */
  readonly maxWaitMs?: number | undefined;
}

/**
 * Effects in PostgreSQL, through the application's own Prisma client. `tx` is the transaction that `$transaction` provides.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be used.
 * @example createReceiver({ payments, inbox, effects: prismaEffects(prisma) })
 */
export function prismaEffects<Tx extends PrismaQueries>(
  prisma: PrismaDatabase<Tx>,
  options: PrismaEffectsOptions = {},
): Effects<EffectContext<Tx>> {
  const { timeoutMs: timeout = 60_000, maxWaitMs: maxWait = 10_000 } = options;
  const table = new PostgresTable("prismaEffects", options, { timeoutMs: true, maxWaitMs: true });
  return effects<Tx>(
    postgresClient<Tx, PrismaQueries>(table, {
      transaction: (work) => prisma.$transaction(work, { timeout, maxWait }),
      outside: (use) => use(prisma),
      async query(on, sql, parameters) {
        if (/^(?:SELECT|INSERT|UPDATE|DELETE)/.test(sql)) {
          return on.$queryRawUnsafe<readonly unknown[]>(sql, ...parameters);
        }
        await on.$executeRawUnsafe(sql, ...parameters);
        return [];
      },
    }),
    options,
  );
}
