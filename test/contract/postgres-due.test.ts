import { postgresStore } from "@payhooks/core/postgres";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { indexOf } from "../../packages/core/src/inbox/record/index-of.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put, swapAll, swapOf, takeOfBothLanes } from "../../packages/core/src/testing/store/writes.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope, withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import { dueBoundCases } from "./due-bound-cases.ts";
import { postgresStoreFixture } from "./postgres-store-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

/** Runs a statement in a transaction of its own, which lasts until the returned function is called. */
async function hold(own: Scope, statement: string): Promise<() => Promise<unknown>> {
  const holder = own.add(new pg.Client({ connectionString: server.url }), (one) => one.end());
  await holder.connect();
  await holder.query("BEGIN");
  await holder.query(statement);
  return () => holder.query("ROLLBACK");
}

const cases = dueBoundCases({
  async open(own) {
    const { schema, ...fixture } = postgresStoreFixture(() => server.url);
    const store = own.add(fixture.connect(), (one) => one.close());
    await store.open();
    const connect = (options = {}) =>
      own.add(postgresStore(server.url, { schema, logger: silent, ...options }), (one) => one.close());
    return { table: `${schema}.records`, store, connect };
  },
  tell: (sql) => server.tell(sql),
  lock: hold,
  lockTable: (own, table) => hold(own, `LOCK TABLE ${table}`),
  async cancelLooks(table) {
    const rows = await server.tell(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND query LIKE '%${table.split(".")[0]}%' AND query NOT LIKE '%SKIP LOCKED%'`);
    return rows.length;
  },
});
for (const { name, run } of cases) it(name, run);

it("a record that another process writes with a lapsed lease is found by the next poll", () =>
  withScope(async (own) => {
    const fixture = postgresStoreFixture(() => server.url);
    const connect = () => own.add(fixture.connect(), (one) => one.close());
    const [store, other] = [connect(), connect()];
    await store.open();
    await other.open();
    // The next look at leases is due in 30 s.
    await takeOfBothLanes(store, 10, 60_000);
    for (const keys of [[keyOf(1)], [keyOf(2), keyOf(3)]]) {
      const swaps = keys.map((key) => {
        const record = acceptedRecord(key, other.now(key));
        const index = { ...indexOf(key, record), dueAt: other.now(key) - 1_000, isLeased: true };
        return swapOf(other, key, null, record, { index });
      });
      await swapAll(other, swaps);
      const { records } = await takeOfBothLanes(store, 10, 60_000);
      expect(records.map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
    }
  }));

it("a poll hides for a time that is no whole number of milliseconds", () =>
  withScope(async (own) => {
    const store = own.add(postgresStoreFixture(() => server.url).connect(), (one) => one.close());
    await store.open();
    await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
    expect((await takeOfBothLanes(store, 10, 10_000 / 3)).records).toHaveLength(1);
  }));
