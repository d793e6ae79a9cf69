/** The clients that effects are ready for in PostgreSQL, each as a merchant has it. */
import type { EffectContext, Effects } from "@payhooks/core";
import {
  drizzleEffects,
  kyselyEffects,
  type PostgresEffectsOptions,
  pgEffects,
  postgresJsEffects,
  prismaEffects,
} from "@payhooks/core/effects/postgres";
import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import { Pool } from "pg";
import postgres from "postgres";
import { prismaClient } from "./prisma-client.ts";

/** Runs one statement in a transaction of a client, and answers its rows. */
export type Run = (tx: unknown, sql: string) => Promise<readonly Record<string, unknown>[]>;

/** A client on a database. Its transactions are `unknown` here: `run` knows what they are. */
export interface Client {
  effects(options?: PostgresEffectsOptions): Effects<EffectContext<unknown>>;
  readonly run: Run;
  /** A transaction that the merchant opens. */
  transaction(work: (tx: unknown) => Promise<void>): Promise<unknown>;
  close(): Promise<unknown>;
}

/** How a client is made. */
export interface ClientKind {
  readonly name: string;
  /** It tells that PostgreSQL has ended an idle transaction in a way that shows it. */
  readonly repeatsWhenThawed: boolean;
  /** It lets nobody else send BEGIN. */
  readonly refusesBegin: boolean;
  /** Effects can throw its connections away. */
  readonly discards: boolean;
  open(url: string): Promise<Client>;
}

const MAX = 4;

/** A pool that outlives its connections, as the documentation asks for it. */
function poolOn(connectionString: string): Pool {
  const pool = new Pool({ connectionString, max: MAX });
  pool.on("error", () => {});
  return pool.on("connect", (client) => client.on("error", () => {}));
}

const pg: ClientKind = {
  name: "pg",
  repeatsWhenThawed: true,
  refusesBegin: false,
  discards: true,
  async open(url) {
    // Nobody hears the errors of its connections: that is ours to do while we have one.
    const pool = new Pool({ connectionString: url, max: MAX });
    pool.on("error", () => {});
    const ready = (options?: PostgresEffectsOptions) => pgEffects(pool, options);
    type Tx = Parameters<Parameters<TransactionOf<ReturnType<typeof ready>>>[0]>[0];
    return {
      effects: ready as Client["effects"],
      run: async (tx, sql) => (await (tx as Tx).query<Record<string, unknown>>(sql)).rows,
      async transaction(work) {
        const client = await pool.connect();
        const lost = (): void => {};
        client.on("error", lost);
        try {
          await client.query("BEGIN");
          await work(client);
          await client.query("COMMIT");
          client.off("error", lost);
          client.release();
        } catch (error) {
          client.release(true);
          throw error;
        }
      },
      close: () => pool.end(),
    };
  },
};

const postgresJs: ClientKind = {
  name: "postgres.js",
  repeatsWhenThawed: true,
  refusesBegin: true,
  discards: false,
  async open(url) {
    const sql = postgres(url, { max: MAX, onnotice: () => {} });
    const ready = (options?: PostgresEffectsOptions) => postgresJsEffects(sql, options);
    type Tx = Parameters<Parameters<TransactionOf<ReturnType<typeof ready>>>[0]>[0];
    return {
      effects: ready as Client["effects"],
      run: async (tx, text) => [...(await (tx as Tx).unsafe(text))],
      transaction: (work) => sql.begin((tx) => work(tx)),
      close: () => sql.end({ timeout: 1 }),
    };
  },
};

const drizzlePg: ClientKind = {
  name: "Drizzle, node-postgres",
  repeatsWhenThawed: false,
  refusesBegin: false,
  discards: false,
  async open(url) {
    const pool = poolOn(url);
    const db = drizzleOnPg(pool);
    const ready = (options?: PostgresEffectsOptions) => drizzleEffects(db, options);
    type Tx = Parameters<Parameters<TransactionOf<ReturnType<typeof ready>>>[0]>[0];
    return {
      effects: ready as Client["effects"],
      run: async (tx, sql) => (await (tx as Tx).execute(sql)).rows,
      transaction: (work) => db.transaction((tx) => work(tx)),
      close: () => pool.end(),
    };
  },
};

const drizzlePostgresJs: ClientKind = {
  name: "Drizzle, postgres.js",
  repeatsWhenThawed: true,
  refusesBegin: true,
  discards: false,
  async open(url) {
    const sql = postgres(url, { max: MAX, onnotice: () => {} });
    const db = drizzleOnPostgresJs(sql);
    const ready = (options?: PostgresEffectsOptions) => drizzleEffects(db, options);
    type Tx = Parameters<Parameters<TransactionOf<ReturnType<typeof ready>>>[0]>[0];
    return {
      effects: ready as Client["effects"],
      run: async (tx, text) => [...(await (tx as Tx).execute(text))],
      transaction: (work) => db.transaction((tx) => work(tx)),
      close: () => sql.end({ timeout: 1 }),
    };
  },
};

const kysely: ClientKind = {
  name: "Kysely",
  repeatsWhenThawed: false,
  refusesBegin: false,
  discards: false,
  async open(url) {
    const db = new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool: poolOn(url) }) });
    const ready = (options?: PostgresEffectsOptions) => kyselyEffects(db, options);
    type Tx = Parameters<Parameters<TransactionOf<ReturnType<typeof ready>>>[0]>[0];
    return {
      effects: ready as Client["effects"],
      run: async (tx, sql) =>
        (await (tx as Tx).executeQuery<Record<string, unknown>>(CompiledQuery.raw(sql))).rows,
      transaction: (work) => db.transaction().execute((tx) => work(tx)),
      close: () => db.destroy(),
    };
  },
};

const prisma: ClientKind = {
  name: "Prisma",
  repeatsWhenThawed: false,
  refusesBegin: false,
  discards: false,
  async open(url) {
    const client = await prismaClient(url, MAX);
    const ready = (options?: PostgresEffectsOptions) => prismaEffects(client, options);
    type Tx = Parameters<Parameters<TransactionOf<ReturnType<typeof ready>>>[0]>[0];
    return {
      effects: ready as Client["effects"],
      async run(tx, sql) {
        if (/^(?:SELECT|WITH)/i.test(sql)) return (tx as Tx).$queryRawUnsafe(sql);
        await (tx as Tx).$executeRawUnsafe(sql);
        return [];
      },
      transaction: (work) => client.$transaction((tx) => work(tx)),
      close: () => client.$disconnect(),
    };
  },
};

/** `ctx.transaction`, as a receiver with these effects has it. */
type TransactionOf<E> =
  E extends Effects<EffectContext<infer Tx>> ? (fn: (tx: Tx) => unknown) => void : never;

export const CLIENTS: readonly ClientKind[] = [pg, postgresJs, drizzlePg, drizzlePostgresJs, kysely, prisma];
