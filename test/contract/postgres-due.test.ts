import { postgresStore } from "@payhooks/core/postgres";
import pg from "pg";
import { afterAll, beforeAll, it } from "vitest";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import { dueBoundCases } from "./due-bound-cases.ts";
import { postgresStoreFixture } from "./postgres-store-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

const cases = dueBoundCases({
  async open(own) {
    const { schema, ...fixture } = postgresStoreFixture(() => server.url);
    const store = own.add(fixture.connect(), (one) => one.close());
    await store.open();
    const connect = () =>
      own.add(postgresStore(server.url, { schema, logger: silent }), (one) => one.close());
    return { table: `${schema}.records`, store, connect };
  },
  tell: (sql) => server.tell(sql),
  async lock(own, query) {
    const holder = own.add(new pg.Client({ connectionString: server.url }), (one) => one.end());
    await holder.connect();
    await holder.query("BEGIN");
    await holder.query(query);
    return () => holder.query("ROLLBACK");
  },
});
for (const { name, run } of cases) it(name, run);
