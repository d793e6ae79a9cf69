import type { PGlite } from "@electric-sql/pglite";
import { afterAll, beforeAll } from "vitest";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import { postgresInboxFixture, waysToPglite } from "./postgres-inbox-fixture.ts";
import { startPglite } from "./postgres-store-fixture.ts";
import { redisKind } from "./redis-inbox-fixture.ts";

let database: PGlite;
beforeAll(async () => {
  database = await startPglite();
});
afterAll(() => database.close());

inboxContract("PGlite", () => postgresInboxFixture(waysToPglite(database)), redisKind, {
  cases: casesOfSlowStores,
  concurrent: true,
});
