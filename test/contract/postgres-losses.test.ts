/** Everything that can make data vanish from PostgreSQL under a running process: it is told once, and the inbox goes on. */
import { postgresInbox, postgresStore } from "@payhooks/core/postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RecordStore, Swap } from "../../packages/core/src/inbox/contract/store.ts";
import { recordKeyOf } from "../../packages/core/src/inbox/record/event.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import { acceptedRecord, endedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put, swapAll, swapOf, takeOfBothLanes } from "../../packages/core/src/testing/store/writes.ts";
import { readDocument } from "../docs/markdown.ts";
import { testEvent } from "../faults/harness/events.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { deliver, startReceiver } from "../faults/harness/receivers.ts";
import { pause, Scope, until, withScope } from "../faults/harness/scope.ts";
import { keys } from "../faults/harness/system.ts";
import { silent } from "../support/silent.ts";
import { postgresStoreFixture } from "./postgres-store-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

/** Three records that wait, and what is known of them. */
async function fill(store: RecordStore): Promise<readonly Swap[]> {
  const swaps = [1, 2, 3].map((n) =>
    swapOf(store, keyOf(n), null, acceptedRecord(keyOf(n), store.now(keyOf(n)))),
  );
  await swapAll(store, swaps);
  return swaps;
}

async function open(own: Scope, options: { readonly migrate?: boolean } = {}) {
  const fixture = postgresStoreFixture(() => server.url, { statementTimeoutMs: 1_500 });
  const maker = own.add(fixture.connect(), (one) => one.close());
  await maker.open();
  const { schema } = fixture;
  const connect = () =>
    own.add(postgresStore(server.url, { schema, logger: silent, ...options }), (one) => one.close());
  const store = connect();
  await store.open();
  const known = await fill(store);
  expect(await store.findLoss?.(known)).toBeNull();
  return { schema, store, known, connect };
}

/** It takes and lists events as if nothing had happened. */
async function expectWorks(store: RecordStore): Promise<void> {
  const key = keyOf(77);
  const record = acceptedRecord(key, store.now(key));
  const written = await put(store, key, null, record);
  const { events } = await store.list({ id: record.id }, null, 10);
  expect(events.filter(({ eventId }) => eventId.startsWith(key))).toHaveLength(1);
  await put(store, key, written, endedRecord(key, store.now(key), record));
  await sendCanary(store);
}

const TABLES = ["records", "labels", "unfinished", "readings", "notes", "meta"];
const ALL = TABLES.map((table) => `$.${table}`).join(", ");

describe("data that vanishes under a running process is reported once, and the process goes on after", () => {
  it.each([
    ["TRUNCATE of all tables", `TRUNCATE ${ALL}`, "replaced"],
    ["TRUNCATE of all but meta", "TRUNCATE $.records, $.labels, $.unfinished, $.readings", "missing"],
    ["TRUNCATE of records", "TRUNCATE $.records", "missing"],
    ["TRUNCATE of labels", "TRUNCATE $.labels", "missing"],
    ["TRUNCATE of unfinished", "TRUNCATE $.unfinished", "missing"],
    ["TRUNCATE of meta", "TRUNCATE $.meta", "replaced"],
    ["TRUNCATE of all tables, places from 1", `TRUNCATE ${ALL} RESTART IDENTITY`, "replaced"],
    [
      "TRUNCATE of all but meta, places from 1",
      "TRUNCATE $.records, $.labels, $.unfinished, $.readings RESTART IDENTITY CASCADE",
      "missing",
    ],
    ["TRUNCATE of records, places from 1", "TRUNCATE $.records RESTART IDENTITY", "missing"],
    ["DELETE of records", "DELETE FROM $.records", "missing"],
    ["DELETE of one record", `DELETE FROM $.records WHERE key = '${keyOf(2)}'`, "missing"],
    ["DELETE of labels", "DELETE FROM $.labels", "missing"],
    ["DELETE of unfinished", "DELETE FROM $.unfinished", "missing"],
    ["DELETE of meta", "DELETE FROM $.meta", "replaced"],
    ...TABLES.map((table) => [`DROP of ${table}`, `DROP TABLE $.${table} CASCADE`, "replaced"]),
    ["DROP of the schema", "DROP SCHEMA $ CASCADE", "replaced"],
    [
      "a backup of the schema from before, with the same datasetId",
      `DROP TABLE $.records, $.labels, $.unfinished CASCADE;
       CREATE TABLE $.records (row_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text COLLATE "C" NOT NULL UNIQUE,
         version text COLLATE "C" NOT NULL, lane text COLLATE "C" NOT NULL, taken boolean NOT NULL DEFAULT FALSE, due_at bigint, expires_at bigint, text text NOT NULL)`,
      "replaced",
    ],
    [
      "a backup of the whole server from before: the records since then are gone",
      `DELETE FROM $.records WHERE key = '${keyOf(3)}';
       DELETE FROM $.labels WHERE record NOT IN (SELECT row_id FROM $.records)`,
      "missing",
    ],
  ])("%s", (_, sql, why) =>
    withScope(async (own) => {
      const { schema, store, known, connect } = await open(own);
      await server.tell(sql.replaceAll("$", schema));
      expect(await store.findLoss?.(known)).toBe(why);
      expect(await store.findLoss?.([])).toBeNull();
      await expectWorks(store);
      const other = connect();
      await other.open();
      expect(await other.findLoss?.([])).toBeNull();
    }),
  );

  it.each(["CONTINUE", "RESTART"])(
    "the statements in the documentation find and delete the rows that are left of lost records (%s IDENTITY)",
    (identity) =>
      withScope(async (own) => {
        const { schema, store, known } = await open(own);
        await server.tell(`TRUNCATE ${schema}.records ${identity} IDENTITY`);
        const since = [4, 5].map(keyOf);
        await swapAll(
          store,
          since.map((key) => swapOf(store, key, null, acceptedRecord(key, store.now(key)))),
        );
        const listed = async () => (await store.list({}, null, 10)).events.map(({ eventId }) => eventId);
        expect(await listed()).toHaveLength(2);
        expect(await store.counts()).toMatchObject({ waiting: 5 });
        const shown = readDocument("docs/operating/losses.md").blocks.filter(({ text }) =>
          text.includes("starts_with"),
        );
        const [found, ...deletions] = (shown[0]?.text ?? "")
          .replaceAll("payhooks.", `${schema}.`)
          .split(";\n");
        const lost = await server.tell(String(found));
        expect(lost.map(({ event_id }) => recordKeyOf(String(event_id))).sort()).toEqual(
          known.map(({ key }) => key).sort(),
        );
        await server.tell(deletions.join(";\n"));
        expect(await listed()).toHaveLength(2);
        expect(await store.counts()).toMatchObject({ waiting: 2 });
        expect(await server.tell(`SELECT FROM ${schema}.events`)).toHaveLength(2);
      }),
  );

  it("a quiet process reports the loss of finished records that it has only found there", () =>
    withScope(async (own) => {
      const schema = "quiet";
      const ran: string[] = [];
      const start = () =>
        startReceiver(own, postgresInbox(server.url, { schema, pollMs: 100, logger: silent }), (receiver) =>
          receiver.onDeposit(({ payTxnId }) => void ran.push(payTxnId)),
        );
      const first = await start();
      for (let n = 0; n < 3; n++) expect(await deliver(first.receiver, testEvent(keys.privateKey))).toBe(200);
      await until("all has run", () => ran.length === 3);
      await first.receiver.close();
      const next = await start();
      await pause(2_500);
      const tables = ["records", "labels", "unfinished", "readings"].map((table) => `${schema}.${table}`);
      await server.tell(`TRUNCATE ${tables.join(", ")} RESTART IDENTITY`);
      const lost = () => next.notices.filter(({ type }) => type === "data-lost");
      await until("the loss is told", () => lost().length > 0, { withinMs: 5_000 });
      expect(lost()).toMatchObject([{ why: "missing" }]);
      expect((await next.receiver.health()).lostAt).not.toBeNull();
    }));

  it("records that were written, ended or taken since are not reported as lost", () =>
    withScope(async (own) => {
      const { store, known } = await open(own);
      const [first] = known;
      if (first === undefined) expect.fail("no record");
      await put(store, first.key, first, endedRecord(first.key, store.now(first.key), first.record));
      await takeOfBothLanes(store, 10, 60_000);
      expect(await store.findLoss?.(known)).toBeNull();
    }));
});

describe("a schema that was emptied while no process ran", () => {
  it.each([[true], [false]])("opens, and reports the loss (migrate: %s)", (migrate) =>
    withScope(async (own) => {
      const { schema, store, connect } = await open(own, { migrate });
      await store.close();
      await server.tell(`TRUNCATE ${ALL}`.replaceAll("$", schema));
      const next = connect();
      await next.open();
      expect(await next.findLoss?.([])).toBe("replaced");
      expect(await next.findLoss?.([])).toBeNull();
      await expectWorks(next);
    }),
  );

  it("opens once for processes that start at one time: all have the same datasetId", () =>
    withScope(async (own) => {
      const { schema, connect } = await open(own, { migrate: false });
      await server.tell(`DELETE FROM ${schema}.meta`);
      const stores = Array.from({ length: 4 }, connect);
      await Promise.all(stores.map((one) => one.open()));
      expect(new Set(stores.map(({ datasetId }) => datasetId)).size).toBe(1);
    }));

  it("rows that are left of a dropped table are not taken for those of new records", () =>
    withScope(async (own) => {
      const { schema, store } = await open(own);
      await server.tell(`DROP TABLE ${schema}.records CASCADE`);
      expect(await store.findLoss?.([])).toBe("replaced");
      await expectWorks(store);
      const listed = await store.list({ state: "waiting" }, null, 10);
      expect(listed.events).toEqual([]);
    }));
});
