import { afterAll, beforeAll } from "vitest";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import { postgresInboxFixture, waysTo } from "./postgres-inbox-fixture.ts";
import { redisKind } from "./redis-inbox-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

// The cases of every server on which time is real.
inboxContract("PostgreSQL", () => postgresInboxFixture(waysTo(server.url)), redisKind, {
  cases: casesOfSlowStores,
  concurrent: true,
});
