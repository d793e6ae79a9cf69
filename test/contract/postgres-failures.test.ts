/** Failures of PostgreSQL: the fate of their writes, and the words of the start about a missing part. */
import { postgresMigration, postgresStore } from "@payhooks/core/postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SessionClient } from "../../packages/core/src/postgres/client.ts";
import { PgSession } from "../../packages/core/src/postgres/session.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import { acceptedRecord, endedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { expectSame, put, readOne, swapAll, swapOf } from "../../packages/core/src/testing/store/writes.ts";
import { systemClock } from "../../packages/core/src/time/clock.ts";
import { environmentOf } from "../../packages/core/src/time/environment.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { NetworkProxy } from "../faults/harness/proxy.ts";
import { Scope, until, withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
import { kindsOf, newRecordWrites } from "./new-record-writes.ts";
import { postgresStoreFixture } from "./postgres-store-fixture.ts";

const scope = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(scope);
});
afterAll(() => scope.close());

/** A store that waits as briefly as a receiver's. */
function open(own: Scope, url: string) {
  const fixture = postgresStoreFixture(() => url, { statementTimeoutMs: 1_500 });
  const store = own.add(fixture.connect(), (one) => one.close());
  return { ...fixture, store, newWrites: (count: number) => newRecordWrites(store, count) };
}

describe("a PostgreSQL that has lost its tables", () => {
  it("is reported once, and the tables are made again", () =>
    withScope(async (own) => {
      const { store, schema } = open(own, server.url);
      await store.open();
      expect(await store.findLoss?.([])).toBeNull();
      for (let loss = 0; loss < 2; loss++) {
        const before = store.datasetId;
        await server.tell(`DROP SCHEMA ${schema} CASCADE`);
        expect(await store.findLoss?.([])).toBe("replaced");
        expect(store.datasetId).not.toBe(before);
        expect(await store.findLoss?.([])).toBeNull();
        await sendCanary(store);
      }
    }));

  it("is reported once also if the tables may not be made", () =>
    withScope(async (own) => {
      const { schema } = open(own, server.url);
      const first = own.add(postgresStore(server.url, { schema }), (one) => one.close());
      await first.open();
      const store = own.add(postgresStore(server.url, { schema, migrate: false }), (one) => one.close());
      await store.open();
      await server.tell(`DROP SCHEMA ${schema} CASCADE`);
      expect(await store.findLoss?.([])).toBe("replaced");
      expect(await store.findLoss?.([])).toBeNull();
      await expect(sendCanary(store)).rejects.toThrow();
    }));
});

describe("the connections of a store", () => {
  it("are three, however many callers ask while there is no connection", () =>
    withScope(async (own) => {
      const alone = await PostgresServer.start(own);
      const { store } = open(own, alone.url);
      const connections = async (): Promise<number> => {
        const [row] = await alone.tell(
          "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'payhooks'",
        );
        return Number(row?.n);
      };
      await store.open();
      await Promise.all(Array.from({ length: 20 }, () => store.counts()));
      expect(await connections()).toBeLessThanOrEqual(3);
      await store.close();
      await until("all are closed", async () => (await connections()) === 0);
    }));
});

it("a client of the program's own that never answers is given up, and the outcome of the write is unknown", async () => {
  const database = new pg.Client({ connectionString: server.url });
  await database.connect();
  let isSilent = false;
  const client = {
    query: (text: string, values: unknown[]) =>
      isSilent ? new Promise<never>(() => {}) : database.query(text, values),
  };
  const fixture = postgresStoreFixture(() => client, { statementTimeoutMs: 300 });
  const store = fixture.connect();
  await store.open();
  const key = keyOf(1);
  const swap = swapOf(store, key, null, acceptedRecord(key, store.now(key)));
  isSilent = true;
  expect(await store.swap([swap])).toMatchObject([{ kind: "unknown" }]);
  isSilent = false;
  expect(await store.swap([swap])).toMatchObject([{ kind: "written" }]);
  await store.close();
  await database.end();
});

it("a statement with a time limit of its own keeps its result if the usual limit cannot be set again", async () => {
  const clients: pg.Client[] = [];
  const make = () => {
    const client = new pg.Client({ connectionString: server.url });
    const query = client.query.bind(client) as (query: { text: string }) => Promise<pg.QueryResult>;
    let limits = 0;
    clients.push(client);
    return Object.assign(client, {
      query: (asked: { text: string }) =>
        asked.text.startsWith("SET statement_timeout") && ++limits === 3
          ? Promise.reject(new Error("refused"))
          : query(asked),
    }) as unknown as SessionClient;
  };
  const session = new PgSession({
    makeClient: make,
    environment: environmentOf(systemClock),
    timeoutMs: 1_500,
    setupSql: "SET statement_timeout = 1500",
  });
  const limit = { name: "", text: "SHOW statement_timeout" };
  expect(await session.run({ ...limit, timeLimitMs: 3_000 })).toEqual([{ statement_timeout: "3s" }]);
  // The next statement has a new connection, with the usual limit.
  expect(await session.run(limit)).toEqual([{ statement_timeout: "1500ms" }]);
  expect(clients).toHaveLength(2);
  await session.close();
});

describe("a PostgreSQL that refuses to write", { timeout: 60_000 }, () => {
  it("because it is read-only says so, and takes the same writes afterwards", () =>
    withScope(async (own) => {
      const alone = await PostgresServer.start(own);
      const { store, newWrites } = open(own, alone.url);
      await store.open();
      await alone.tell("ALTER SYSTEM SET default_transaction_read_only = on");
      await alone.tell("SELECT pg_reload_conf()");
      await until("it is read-only", () =>
        sendCanary(store).then(
          () => false,
          () => true,
        ),
      );
      const swaps = newWrites(120);
      expect(kindsOf(await swapAll(store, swaps))).toEqual(["not-written"]);
      await alone.tell("ALTER SYSTEM RESET default_transaction_read_only");
      await alone.tell("SELECT pg_reload_conf()");
      await until("it takes writes", () =>
        sendCanary(store).then(
          () => true,
          () => false,
        ),
      );
      const again = swaps.map((swap) => ({ ...swap, at: store.now(swap.key) }));
      expect(kindsOf(await swapAll(store, again))).toEqual(["written"]);
    }));

  it("that is frozen leaves the outcome of a write open: sent again, the write is made once", () =>
    withScope(async (own) => {
      const alone = await PostgresServer.start(own);
      const { store, newWrites } = open(own, alone.url);
      await store.open();
      const swaps = newWrites(60);
      alone.freeze();
      expect(kindsOf(await swapAll(store, swaps))).toEqual(["unknown"]);
      alone.thaw();
      await until("it answers", () =>
        sendCanary(store).then(
          () => true,
          () => false,
        ),
      );
      const results = await swapAll(store, swaps);
      for (const [at, { version }] of swaps.entries()) {
        const result = results[at];
        const isMade =
          result?.kind === "written" || (result?.kind === "conflict" && result.current?.version === version);
        expect(isMade).toBe(true);
      }
      expect((await store.counts()).waiting).toBe(swaps.length);
    }));

  it("that cannot be reached has written nothing", () =>
    withScope(async (own) => {
      const proxy = await NetworkProxy.start(own, server.port);
      const { store, newWrites } = open(own, server.urlOf(proxy.port));
      await store.open();
      proxy.refuse(true);
      await until("the connections are known to be gone", async () =>
        kindsOf(await swapAll(store, newWrites(1))).includes("not-written"),
      );
      proxy.refuse(false);
      const again = newWrites(3);
      expect(kindsOf(await swapAll(store, again))).toEqual(["written"]);
    }));
});

it("processes that start at one time on a server without tables make them once", () =>
  withScope(async (own) => {
    for (let round = 0; round < 6; round++) {
      const { connect } = postgresStoreFixture(() => server.url);
      const stores = Array.from({ length: 6 }, () => own.add(connect(), (one) => one.close()));
      await Promise.all(stores.map((store) => store.open()));
      expect(new Set(stores.map(({ datasetId }) => datasetId)).size).toBe(1);
    }
  }));

it("a write that PostgreSQL cannot take is refused alone, and the writes beside it are made", () =>
  withScope(async (own) => {
    const { store, newWrites, schema } = open(own, server.url);
    await store.open();
    await server.tell(`ALTER TABLE ${schema}.records ADD CHECK (length(text) < 100000)`);
    const [first, ...others] = newWrites(10);
    if (first === undefined) expect.fail("no write");
    const content = Buffer.alloc(200_000, "a");
    const long = swapOf(store, first.key, null, acceptedRecord(first.key, store.now(first.key), { content }));
    const [refused, ...made] = await swapAll(store, [long, ...others]);
    expect(refused?.kind).toBe("refused");
    expect(kindsOf(made)).toEqual(["written"]);
  }));

it("a pool whose connections are all taken keeps nothing waiting", () =>
  withScope(async (own) => {
    const pool = own.add(new pg.Pool({ connectionString: server.url, max: 1 }), (one) => one.end());
    const taken = own.add(await pool.connect(), (one) => one.release());
    await taken.query("BEGIN");
    const store = own.add(postgresStoreFixture(() => pool).connect(), (one) => one.close());
    await store.open();
    await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
    await taken.query("ROLLBACK");
  }));

it("the events of a reference can be read with SQL, also after their end", () =>
  withScope(async (own) => {
    const { store, schema } = open(own, server.url);
    await store.open();
    const record = acceptedRecord(keyOf(1), store.now(keyOf(1)), { referenceId: "order-17" });
    const first = await put(store, keyOf(1), null, record);
    const select = `SELECT status, state FROM ${schema}.events WHERE reference_id = 'order-17'`;
    expect(await server.tell(select)).toMatchObject([{ state: "waiting" }]);
    await put(store, keyOf(1), first, endedRecord(keyOf(1), store.now(keyOf(1)), record));
    expect(await server.tell(select)).toMatchObject([{ state: "finished" }]);
  }));

describe("a role that may not make tables", { timeout: 60_000 }, () => {
  it("gets an error whose fix names the SQL, and opens once an administrator has run it", () =>
    withScope(async (own) => {
      const schema = `granted_${process.pid}`;
      await server.tell("CREATE ROLE shop LOGIN");
      const url = server.url.replace("postgres@", "shop@");
      for (const migrate of [true, false]) {
        const refused = own.add(postgresStore(url, { schema, migrate, logger: silent }), (one) =>
          one.close(),
        );
        await expect(refused.open()).rejects.toMatchObject({
          code: "ERR_POSTGRES_UNSUITABLE",
          fix: expect.stringContaining(`postgresMigration("${schema}")`),
        });
      }
      await server.tell(postgresMigration(schema));
      await server.tell(
        `GRANT USAGE ON SCHEMA ${schema} TO shop; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO shop`,
      );
      const store = own.add(postgresStore(url, { schema, migrate: false, logger: silent }), (one) =>
        one.close(),
      );
      await store.open();
      const written = await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
      expectSame(await readOne(store, keyOf(1)), written);
      await sendCanary(store);
      expect((await store.counts()).waiting).toBe(1);
    }));

  it("a role that lacks any privilege that events need is refused, and the error names the privilege", () =>
    withScope(async (own) => {
      const schema = `lacking_${process.pid}`;
      await server.tell("CREATE ROLE lacking LOGIN");
      await server.tell(postgresMigration(schema));
      const grant = `GRANT USAGE ON SCHEMA ${schema} TO lacking; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO lacking`;
      const store = own.add(
        postgresStore(server.url.replace("postgres@", "lacking@"), { schema, logger: silent }),
        (one) => one.close(),
      );
      for (const [privilege, table] of [
        ["INSERT", "labels"],
        ["DELETE", "unfinished"],
        ["UPDATE", "records"],
        ["DELETE", "readings"],
      ]) {
        await server.tell(`${grant}; REVOKE ${privilege} ON ${schema}.${table} FROM lacking`);
        await expect(store.open()).rejects.toMatchObject({
          code: "ERR_POSTGRES_UNSUITABLE",
          message: expect.stringContaining(`${privilege} ON ${schema}.${table}`),
        });
      }
      await server.tell(grant);
      await store.open();
      await sendCanary(store);
    }));

  it("a database that cannot write every character is refused", () =>
    withScope(async (own) => {
      for (const encoding of ["LATIN1", "SQL_ASCII"]) {
        const name = `encoded_${encoding.toLowerCase()}`;
        await server.tell(
          `CREATE DATABASE ${name} ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
        );
        const url = new URL(server.url);
        url.pathname = `/${name}`;
        const store = own.add(postgresStore(url.href, { logger: silent }), (one) => one.close());
        await expect(store.open()).rejects.toMatchObject({
          code: "ERR_POSTGRES_UNSUITABLE",
          message: expect.stringContaining(encoding),
        });
      }
    }));

  it("tables of a newer version are left alone", () =>
    withScope(async (own) => {
      const { store, schema } = open(own, server.url);
      await store.open();
      await server.tell(`UPDATE ${schema}.meta SET version = 9`);
      const other = own.add(postgresStore(server.url, { schema, logger: silent }), (one) => one.close());
      await expect(other.open()).rejects.toMatchObject({ code: "ERR_POSTGRES_UNSUITABLE" });
    }));

  it("a server that would lose acknowledged events causes a warning", () =>
    withScope(async (own) => {
      const warnings: string[] = [];
      const logger = { ...silent, warn: (text: string) => void warnings.push(text) };
      const store = own.add(postgresStore(server.url, { logger }), (one) => one.close());
      await store.open();
      expect(warnings).toEqual([expect.stringContaining("fsync = off")]);
    }));
});

it.each([
  ["", "ERR_OPTION_MISSING"],
  ["localhost", "ERR_OPTION_INVALID"],
])("an address %j is refused with %s", async (target, code) => {
  await expect(postgresStore(target).open()).rejects.toMatchObject({ code });
});

it("a schema that would need quotes is refused", () => {
  expect(() => postgresStore("postgres://x", { schema: 'a"b' })).toThrow(/plain name/);
});
