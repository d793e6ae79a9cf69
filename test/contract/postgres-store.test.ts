import type { PGlite } from "@electric-sql/pglite";
import type { QueryClient } from "@payhooks/core/postgres";
import { storeContract } from "@payhooks/core/testing/store";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, it } from "vitest";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { postgresStoreFixture, postgresTraits, startPglite } from "./postgres-store-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
let pool: pg.Pool;
let sql: postgres.Sql;
let pglite: PGlite;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
  pool = new pg.Pool({ connectionString: server.url });
  sql = postgres(server.url, { max: 3, onnotice: () => {} });
  pglite = await startPglite();
});
afterAll(async () => {
  await pool.end();
  await sql.end();
  await pglite.close();
  await scope.close();
});

describe("the store contract: PostgreSQL by a pool", () => {
  for (const { name, run } of storeContract(() => postgresStoreFixture(() => pool), postgresTraits))
    it.concurrent(name, run);
});

describe("the store contract: PostgreSQL by a pooler that keeps no session", () => {
  for (const { name, run } of storeContract(() => postgresStoreFixture(() => server.url, { pooled: true }), {
    ...postgresTraits,
    announces: false,
  }))
    it.concurrent(name, run);
});

describe("the store contract: PostgreSQL by postgres.js", () => {
  const client: QueryClient = {
    query: async (text, values) => ({
      rows: await sql.unsafe(text, values as postgres.ParameterOrJSON<never>[]),
    }),
  };
  for (const { name, run } of storeContract(() => postgresStoreFixture(() => client), {
    ...postgresTraits,
    announces: false,
  }))
    it.concurrent(name, run);
});

describe("the store contract: PGlite", () => {
  for (const { name, run } of storeContract(() => postgresStoreFixture(() => pglite), {
    ...postgresTraits,
    announces: false,
  }))
    it(name, run);
});
