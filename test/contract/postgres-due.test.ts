/** Looks for due records begin where the last one ended. Nothing that is due may be passed over by that. */
import { postgresStore } from "@payhooks/core/postgres";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RecordStore } from "../../packages/core/src/inbox/contract/store.ts";
import { indexOf } from "../../packages/core/src/inbox/record/index-of.ts";
import { accepted, HOUR_MS, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put, takeDue } from "../../packages/core/src/testing/store/writes.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope, withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import { postgresStoreFixture } from "./postgres-store-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

async function open(own: Scope) {
  const { schema, ...fixture } = postgresStoreFixture(() => server.url);
  const store = own.add(fixture.connect(), (one) => one.close());
  await store.open();
  const connect = () => own.add(postgresStore(server.url, { schema, logger: silent }), (one) => one.close());
  return { schema, store, connect };
}

/** Due since an hour, as its writer says. */
async function late(store: RecordStore, key: string): Promise<void> {
  const record = accepted(key, store.now(key));
  await put(store, key, null, record, {
    index: { ...indexOf(key, record), dueAt: store.now(key) - HOUR_MS },
  });
}

const taken = async (store: RecordStore, limit = 10, hideMs = 60_000): Promise<readonly string[]> =>
  (await takeDue(store, limit, hideMs)).records.map(({ key }) => key);

it("a record that another process writes with an old due time is found by the next look", () =>
  withScope(async (own) => {
    const { store, connect } = await open(own);
    const other = connect();
    await other.open();
    expect(await taken(store)).toEqual([]);
    await late(other, keyOf(1));
    expect(await taken(store)).toEqual([keyOf(1)]);
  }));

it("records that were due long before the process began are found by its first look, and the rest by later ones", () =>
  withScope(async (own) => {
    const { schema, store, connect } = await open(own);
    for (const n of [1, 2, 3]) await late(store, keyOf(n));
    await server.tell(`UPDATE ${schema}.records SET due_at = row_id`);
    const next = connect();
    await next.open();
    expect((await takeDue(next, 0, 0)).left).toBe(3);
    expect(await taken(next, 1)).toEqual([keyOf(1)]);
    expect(await taken(next, 1)).toEqual([keyOf(2)]);
    expect((await next.counts()).oldestDueAt).toBe(3);
    expect(await taken(next, 1)).toEqual([keyOf(3)]);
    expect(await taken(next, 1)).toEqual([]);
  }));

it("a record that another transaction had locked is found once it is free", () =>
  withScope(async (own) => {
    const { schema, store } = await open(own);
    for (const n of [1, 2]) await late(store, keyOf(n));
    await server.tell(`UPDATE ${schema}.records SET due_at = row_id`);
    const holder = own.add(new pg.Client({ connectionString: server.url }), (one) => one.end());
    await holder.connect();
    await holder.query("BEGIN");
    await holder.query(`SELECT FROM ${schema}.records WHERE key = '${keyOf(1)}' FOR UPDATE`);
    const { records, left } = await takeDue(store, 10, 60_000);
    expect(records.map(({ key }) => key)).toEqual([keyOf(2)]);
    expect(left).toBeGreaterThan(0);
    expect(await taken(store)).toEqual([]);
    await holder.query("ROLLBACK");
    expect(await taken(store)).toEqual([keyOf(1)]);
  }));

it("a record that is no longer hidden is found", () =>
  withScope(async (own) => {
    const { store } = await open(own);
    await late(store, keyOf(1));
    for (let round = 0; round < 3; round++) {
      await expect.poll(() => taken(store, 1, 1).then(({ length }) => length)).toBe(1);
    }
  }));
