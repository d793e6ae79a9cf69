import { PGlite } from "@electric-sql/pglite";
import { type PostgresStoreOptions, type PostgresTarget, postgresStore } from "@payhooks/core/postgres";
import type { StoreFixture, StoreTraits } from "@payhooks/core/testing/store";
import { pause } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";

let fixtures = 0;

/** Finished events are listed too; the server's clock is believed. */
export const postgresTraits: StoreTraits = {
  oldestOfAll: true,
  listsFinished: true,
  announces: true,
  distrustsClock: false,
  scans: true,
};

/** A schema of its own on a running PostgreSQL. Time is real. */
export function postgresStoreFixture(
  connect: () => PostgresTarget,
  options: PostgresStoreOptions = {},
): StoreFixture & { readonly schema: string } {
  const schema = `store_${process.pid}_${++fixtures}`;
  return {
    schema,
    // It waits long: the contract says nothing about time, and the machine may be busy.
    connect: () =>
      postgresStore(connect(), { schema, logger: silent, statementTimeoutMs: 30_000, ...options }),
    advance: (ms) => pause(ms),
    close: async () => {},
  };
}

/** A PostgreSQL in this process, which every store of it shares. */
export async function startPglite(): Promise<PGlite> {
  const database = new PGlite();
  await database.waitReady;
  return database;
}
