import type { EffectContext } from "./context.ts";
import type { Effects } from "./effects.ts";
import { effectsThrough } from "./postgres-binding.ts";
import type { PostgresEffectsOptions } from "./postgres-table.ts";

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
  /** Runs `work` in a transaction that begins with these options of `BEGIN`. */
  begin<T>(options: string, work: (tx: Tx) => T | Promise<T>): PromiseLike<unknown>;
}

/**
 * Effects in PostgreSQL, through the application's own postgres.js client. `tx` is a `TransactionSql`.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be used.
 * @example createReceiver({ payments, inbox, effects: postgresJsEffects(postgres(process.env.DATABASE_URL)) })
 */
export function postgresJsEffects<Tx extends PostgresJsQueries>(
  sql: PostgresJs<Tx>,
  options: PostgresEffectsOptions = {},
): Effects<EffectContext<Tx>> {
  return effectsThrough<Tx, PostgresJsQueries>(
    {
      owner: "postgresJsEffects",
      transaction: async <T>(work: (tx: Tx) => Promise<T>) => (await sql.begin(work)) as T,
      withoutTransaction: (use) => use(sql),
      query: async (on, text, parameters) => [...(await on.unsafe(text, [...parameters]))],
    },
    options,
  );
}

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
 * Effects in PostgreSQL, through the application's own Drizzle database, with node-postgres or postgres.js below it. `tx` is the
 * transaction that `db.transaction` provides.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE` if the table cannot be used.
 * @example createReceiver({ payments, inbox, effects: drizzleEffects(drizzle(pool)) })
 */
export function drizzleEffects<Tx extends DrizzleQueries>(
  db: DrizzleDatabase<Tx>,
  options: PostgresEffectsOptions = {},
): Effects<EffectContext<Tx>> {
  return effectsThrough<Tx, DrizzleQueries>(
    {
      owner: "drizzleEffects",
      transaction: (work) => db.transaction(work),
      withoutTransaction: (use) => use(db),
      query: async (on, sql, parameters) => rowsOf(await on.execute(inlineParameters(sql, parameters))),
    },
    options,
  );
}

/** Texts of Payhooks that need no escaping: ids, numbers, names of tables. */
const LITERAL_PATTERN = /^[A-Za-z0-9_.:/~ -]*$/;

/** Writes parameters into the text. Drizzle takes parameters only through its own `sql`, which Payhooks does not have. */
function inlineParameters(sql: string, parameters: readonly string[]): string {
  return sql.replace(/\$(\d)/g, (_, number: string) => {
    const text = parameters[Number(number) - 1] ?? "";
    if (!LITERAL_PATTERN.test(text)) throw new TypeError("a parameter cannot be written as a literal");
    return `'${text}'`;
  });
}

/** The rows of a result. node-postgres returns an object with rows, postgres.js the rows themselves. */
function rowsOf(result: unknown): readonly unknown[] {
  if (Array.isArray(result)) return result;
  return (result as { readonly rows?: readonly unknown[] }).rows ?? [];
}

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
  return effectsThrough<Tx, KyselyQueries>(
    {
      owner: "kyselyEffects",
      transaction: (work) => db.transaction().execute(work),
      withoutTransaction: (use) => use(db),
      // A query like those of Kysely's `CompiledQuery.raw`, which Payhooks does not have.
      query: async (on, sql, parameters) => {
        const queryId = { queryId: "payhooks" };
        const query: KyselyQuery["query"] = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
        return (await on.executeQuery({ query, queryId, sql, parameters })).rows;
      },
    },
    options,
  );
}

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
  return effectsThrough<Tx, PrismaQueries>(
    {
      owner: "prismaEffects",
      extraOptions: { timeoutMs: true, maxWaitMs: true },
      transaction: (work) => prisma.$transaction(work, { timeout, maxWait }),
      withoutTransaction: (use) => use(prisma),
      async query(on, sql, parameters) {
        if (/^(?:SELECT|INSERT|UPDATE|DELETE)/.test(sql)) {
          return on.$queryRawUnsafe<readonly unknown[]>(sql, ...parameters);
        }
        await on.$executeRawUnsafe(sql, ...parameters);
        return [];
      },
    },
    options,
  );
}
