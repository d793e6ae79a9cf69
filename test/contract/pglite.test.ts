import type { PGlite } from "@electric-sql/pglite";
import { afterAll, beforeAll } from "vitest";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import { postgresGround, waysToPglite } from "./postgres-ground.ts";
import { startPglite } from "./postgres-store-fixture.ts";
import { redisKind } from "./redis-ground.ts";

let database: PGlite;
beforeAll(async () => {
  database = await startPglite();
});
afterAll(() => database.close());

inboxContract("PGlite", () => postgresGround(waysToPglite(database)), redisKind, {
  cases: casesOfSlowStores,
  concurrent: true,
});
