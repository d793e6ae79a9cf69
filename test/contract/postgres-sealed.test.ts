import { afterAll, beforeAll } from "vitest";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import { postgresInboxFixture, waysTo } from "./postgres-inbox-fixture.ts";
import { redisKind } from "./redis-inbox-fixture.ts";
import { sealedFixture } from "./sealed-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

inboxContract(
  "PostgreSQL with a seal",
  () => sealedFixture(postgresInboxFixture(waysTo(server.url))),
  redisKind,
  {
    cases: casesOfSlowStores,
    concurrent: true,
  },
);
