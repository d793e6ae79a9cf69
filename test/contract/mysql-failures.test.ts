/** Failures of MariaDB: the fate of their writes, and the words of the start about a missing part. */
import { mysqlInbox, mysqlMigration, mysqlStore } from "@payhooks/core/mysql";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Swap } from "../../packages/core/src/inbox/contract/store.ts";
import { LANES } from "../../packages/core/src/inbox/record/lane.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { swapAll, swapOf } from "../../packages/core/src/testing/store/writes.ts";
import { type MariadbServer, startMariadb } from "../effects/mariadb-server.ts";
import { testEvent } from "../faults/harness/events.ts";
import { NetworkProxy } from "../faults/harness/proxy.ts";
import { deliver, startReceiver } from "../faults/harness/receivers.ts";
import { type Scope, until, withScope } from "../faults/harness/scope.ts";
import { keys } from "../faults/harness/system.ts";
import { freePort } from "../support/free-port.ts";
import { silent } from "../support/silent.ts";
import { mysqlStoreFixture } from "./mysql-store-fixture.ts";
import { kindsOf, newRecordWrites } from "./new-record-writes.ts";

let server: MariadbServer;
let admin: Connection;
beforeAll(async () => {
  server = await startMariadb(["--max-allowed-packet=1M", "--skip-name-resolve"]);
  admin = await createConnection({ uri: server.url, multipleStatements: true });
  await admin.query(`CREATE USER shop@'%' IDENTIFIED BY 'right-pass'; GRANT ALL ON shop.* TO shop@'%';
    CREATE USER poor@'%'; CREATE DATABASE closed`);
});
afterAll(async () => {
  admin.destroy();
  await server.stop();
});

const urlAs = (user: string, rest = "shop"): string => {
  const url = new URL(server.url);
  return `mysql://${user}@127.0.0.1:${url.port}/${rest}`;
};
const works = (store: ReturnType<typeof mysqlStore>): Promise<boolean> =>
  sendCanary(store).then(
    () => true,
    () => false,
  );

/** A store that waits as briefly as a receiver's, unless the test is not about time. */
function open(own: Scope, url: string, statementTimeoutMs = 1_500) {
  const fixture = mysqlStoreFixture(() => url, { statementTimeoutMs });
  const store = own.add(fixture.connect(), (one) => one.close());
  return { ...fixture, store, newWrites: (count: number) => newRecordWrites(store, count) };
}

const TABLES = ["records", "events", "readings", "notes", "meta"];
const each = (statement: string): string => TABLES.map((table) => `${statement} $_${table}`).join("; ");

describe("data that vanishes under a running process is reported once, and the process goes on after", () => {
  it.each([
    ["TRUNCATE of all tables", each("TRUNCATE"), "replaced"],
    ["DELETE of all rows", each("DELETE FROM"), "replaced"],
    ["DELETE of meta", "DELETE FROM $_meta", "replaced"],
    ["TRUNCATE of records", "TRUNCATE $_records", "missing"],
    ["TRUNCATE of events", "TRUNCATE $_events", "missing"],
    ["DROP of all tables", each("DROP TABLE"), "replaced"],
    ...TABLES.map((table) => [`DROP of ${table}`, `DROP TABLE $_${table}`, "replaced"]),
  ])("%s", (_, sql, why) =>
    withScope(async (own) => {
      const { store, prefix, newWrites, connect } = open(own, server.url);
      await store.open();
      const swaps = newWrites(3);
      await swapAll(store, swaps);
      expect(await store.findLoss?.(swaps)).toBeNull();
      const other = own.add(connect(), (one) => one.close());
      await other.open();
      const before = store.datasetId;
      await admin.query(sql.replaceAll("$", prefix));
      expect(await store.findLoss?.(swaps)).toBe(why);
      expect(await store.findLoss?.([])).toBeNull();
      const isRenamed = store.datasetId !== before;
      // Another process with the same tables learns of new data by its name.
      expect(await other.findLoss?.([])).toBe(isRenamed ? "replaced" : null);
      expect(other.datasetId).toBe(store.datasetId);
      expect(kindsOf(await swapAll(store, newWrites(5).slice(3)))).toEqual(["written"]);
      await store.writeNote?.("a", "note");
      await sendCanary(store);
    }),
  );

  it("a dropped table is made again although no record is known", () =>
    withScope(async (own) => {
      const { store, prefix, newWrites } = open(own, server.url);
      await store.open();
      await admin.query(`DROP TABLE ${prefix}_records`);
      expect(await store.findLoss?.([])).toBe("replaced");
      expect(kindsOf(await swapAll(store, newWrites(1)))).toEqual(["written"]);
    }));

  it.each([true, false])("all tables are emptied, and the user may not make any (migrate: %s)", (migrate) =>
    withScope(async (own) => {
      const { prefix } = open(own, server.url);
      await admin.query(`${mysqlMigration(prefix)} CREATE USER IF NOT EXISTS writer@'%';
        GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO writer@'%'`);
      const store = own.add(mysqlStore(urlAs("writer"), { prefix, migrate, logger: silent }), (one) =>
        one.close(),
      );
      await store.open();
      const before = store.datasetId;
      await admin.query(each("TRUNCATE").replaceAll("$", prefix));
      expect(await store.findLoss?.([])).toBe("replaced");
      expect(["", before]).not.toContain(store.datasetId);
      expect(await store.findLoss?.([])).toBeNull();
      await sendCanary(store);
    }),
  );

  it("if the user may not make the tables again, each loss is reported once, and the process goes on when they are there", () =>
    withScope(async (own) => {
      const { store: maker, prefix, newWrites } = open(own, server.url);
      await maker.open();
      const store = own.add(mysqlStore(server.url, { prefix, migrate: false, logger: silent }), (one) =>
        one.close(),
      );
      await store.open();
      const swaps = newWrites(3);
      await swapAll(store, swaps);
      await admin.query(`DROP TABLE ${prefix}_meta`);
      expect(await store.findLoss?.(swaps)).toBe("replaced");
      expect(await store.findLoss?.(swaps)).toBeNull();
      await admin.query(`TRUNCATE ${prefix}_records`);
      expect(await store.findLoss?.(swaps)).toBe("missing");
      await admin.query(mysqlMigration(prefix));
      expect(await store.findLoss?.([])).toBeNull();
      await sendCanary(store);
    }));

  it("a receiver whose tables were emptied reports the loss within 5 s", () =>
    withScope(async (own) => {
      const { prefix } = open(own, server.url);
      const inbox = mysqlInbox(server.url, { prefix, pollMs: 100, logger: silent });
      const ran: string[] = [];
      const { receiver, notices } = await startReceiver(own, inbox, (one) =>
        one.onDeposit(({ payTxnId }) => void ran.push(payTxnId)),
      );
      expect(await deliver(receiver, testEvent(keys.privateKey))).toBe(200);
      await until("it has run", () => ran.length === 1);
      await admin.query(each("TRUNCATE").replaceAll("$", prefix));
      const lost = () => notices.filter(({ type }) => type === "data-lost");
      await until("the loss is told", () => lost().length > 0, { withinMs: 5_000 });
      expect(lost()).toMatchObject([{ why: "replaced" }]);
      expect((await receiver.health()).lostAt).not.toBeNull();
      expect(await deliver(receiver, testEvent(keys.privateKey))).toBe(200);
    }));
});

describe("tables that are lost", () => {
  it("leave nothing that is taken for an event of a later record", () =>
    withScope(async (own) => {
      const { store, prefix, newWrites } = open(own, server.url);
      await store.open();
      const [first, second] = newWrites(2);
      if (first === undefined || second === undefined) expect.fail("no writes");
      await swapAll(store, [first]);
      await admin.query(`TRUNCATE ${prefix}_records`);
      await swapAll(store, [second]);
      const { events } = await store.list({}, null, 10);
      expect(events.map(({ eventId }) => eventId)).toEqual(second.index.events.map(({ eventId }) => eventId));
    }));
});

describe("the start says in words why it fails", () => {
  const startOf = async (url: string, migrate = true): Promise<string> => {
    const store = mysqlStore(url, { prefix: `start_${process.pid}`, migrate });
    try {
      await store.open();
    } catch (error) {
      const { code, message } = error as { readonly code: string; readonly message: string };
      return `${code}: ${message}`;
    } finally {
      await store.close();
    }
    throw new Error("It opened.");
  };

  it.each([
    [
      "a wrong password",
      () => urlAs("shop:wrong"),
      /ERR_INBOX_UNAVAILABLE.*refuses this user or the password/s,
    ],
    ["a user who does not exist", () => urlAs("nobody"), /ERR_INBOX_UNAVAILABLE.*refuses this user/s],
    ["no such database", () => urlAs("root", "nowhere"), /ERR_INBOX_UNAVAILABLE.*database does not exist/s],
    [
      "a database of others",
      () => urlAs("shop:right-pass", "closed"),
      /ERR_INBOX_UNAVAILABLE.*may not use this database/s,
    ],
    ["no database", () => urlAs("root", ""), /ERR_MYSQL_UNSUITABLE.*names no database/s],
    [
      "a host that is not known",
      () => "mysql://root@nowhere.invalid/shop",
      /ERR_INBOX_UNAVAILABLE.*host of the address/s,
    ],
    ["another kind of address", () => "postgres://localhost/shop", /ERR_OPTION_INVALID/],
  ])("for %s", async (_, url, said) => {
    const words = await startOf(url());
    expect(words).toMatch(said);
    expect(words).not.toMatch(/wrong:|right-pass/);
  });

  it("where nothing answers", async () => {
    expect(await startOf(`mysql://root@127.0.0.1:${await freePort()}/shop`)).toMatch(/nothing answers/);
  });

  it("where there are no tables and none may be made", async () => {
    expect(await startOf(server.url, false)).toMatch(/ERR_MYSQL_UNSUITABLE.*no tables.*migrate is false/s);
  });

  it("where the user may not write", async () => {
    const prefix = `poor_${process.pid}`;
    await admin.query(`${mysqlMigration(prefix)} GRANT SELECT, INSERT ON shop.* TO poor@'%'`);
    const store = mysqlStore(urlAs("poor"), { prefix });
    await expect(store.open()).rejects.toThrow("may not do everything that events need");
    await admin.query("GRANT UPDATE, DELETE ON shop.* TO poor@'%'");
    await store.open();
    await sendCanary(store);
    await store.close();
  });
});

it("processes that start at one time on a server without tables make them once", () =>
  withScope(async (own) => {
    for (let round = 0; round < 4; round++) {
      const { connect } = mysqlStoreFixture(() => server.url);
      const stores = Array.from({ length: 6 }, () => own.add(connect(), (one) => one.close()));
      await Promise.all(stores.map((store) => store.open()));
      expect(new Set(stores.map(({ datasetId }) => datasetId)).size).toBe(1);
    }
  }));

it("keys that differ in case, accents or spaces at the end belong to different records", () =>
  withScope(async (own) => {
    const { store } = open(own, server.url);
    await store.open();
    const keys = ["key", "KEY", "kéy", "ke\u0301y", "key ", "key\t"];
    const swaps = keys.map((key) => swapOf(store, key, null, acceptedRecord(key, store.now(key))));
    expect(kindsOf(await swapAll(store, swaps))).toEqual(["written"]);
    const found = await store.read(keys);
    expect(found.map((one) => one?.version)).toEqual(swaps.map(({ version }) => version));
  }));

it("an event that fits into no packet is refused alone, and the writes beside it are made", () =>
  withScope(async (own) => {
    const { store, newWrites } = open(own, server.url);
    await store.open();
    const [first, ...others] = newWrites(10);
    if (first === undefined) expect.fail("no write");
    const content = Buffer.alloc(2_000_000, "a");
    const long = swapOf(store, first.key, null, acceptedRecord(first.key, store.now(first.key), { content }));
    const [refused, ...made] = await swapAll(store, [long, ...others]);
    expect(refused).toMatchObject({ kind: "refused", cause: { code: "ERR_MYSQL_UNSUITABLE" } });
    expect(kindsOf(made)).toEqual(["written"]);
  }));

it("a deadlock in the second lane leaves no record of the first lane hidden", () =>
  withScope(async (own) => {
    const { store, prefix } = open(own, server.url);
    await store.open();
    for (const [n, lane] of LANES.entries()) {
      const key = keyOf(n);
      // Due for a while: the server's clock may be a little behind what the store takes for it.
      const record = acceptedRecord(key, store.now(key) - 10_000, { lane });
      await swapAll(store, [swapOf(store, key, null, record)]);
    }
    // An engine without transactions remembers that it has happened once.
    await admin.query(`CREATE TABLE ${prefix}_once (n INT) ENGINE = MyISAM;
      CREATE TRIGGER ${prefix}_deadlock BEFORE UPDATE ON ${prefix}_records FOR EACH ROW
      IF NEW.lane = '${LANES.at(-1)}' AND NOT EXISTS (SELECT 1 FROM ${prefix}_once) THEN
        INSERT INTO ${prefix}_once VALUES (1);
        SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213;
      END IF`);
    const { records } = await store.takeDue({ usual: 10, patient: 10 }, 60_000);
    expect(records.map(({ key }) => key).sort()).toEqual(LANES.map((_, n) => keyOf(n)).sort());
    const [rows] = await admin.query(`SELECT n FROM ${prefix}_once`);
    expect(rows).toEqual([{ n: 1 }]);
  }));

describe("a MariaDB that does not write", { timeout: 60_000 }, () => {
  it("because it is read-only says so, and takes the same writes afterwards", () =>
    withScope(async (own) => {
      const { store, newWrites } = open(own, urlAs("shop:right-pass"), 20_000);
      await store.open();
      await admin.query("SET GLOBAL read_only = 1");
      const swaps = newWrites(120);
      expect(kindsOf(await swapAll(store, swaps))).toEqual(["not-written"]);
      await admin.query("SET GLOBAL read_only = 0");
      const again = swaps.map((swap) => ({ ...swap, at: store.now(swap.key) }));
      expect(kindsOf(await swapAll(store, again))).toEqual(["written"]);
    }));

  it("because another session has locked the row has written nothing, and goes on afterwards", () =>
    withScope(async (own) => {
      const { store, newWrites, prefix } = open(own, server.url);
      await store.open();
      const [first] = newWrites(1);
      if (first === undefined) expect.fail("no write");
      await swapAll(store, [first]);
      await admin.query(`START TRANSACTION; SELECT * FROM ${prefix}_records FOR UPDATE`);
      const now = store.now(first.key);
      const next = swapOf(store, first.key, first, acceptedRecord(first.key, now));
      const [locked] = await swapAll(store, [next]);
      expect(["not-written", "unknown"]).toContain(locked?.kind);
      // A look does not wait for a locked record, and leaves it to others.
      expect((await store.takeDue({ usual: 5, patient: 0 }, 1_000)).records).toEqual([]);
      await admin.query("ROLLBACK");
      const [made] = await swapAll(store, [{ ...next, at: store.now(first.key) }]);
      expect(made?.kind).toBe("written");
    }));

  it("because it is frozen leaves the outcome of a write open: sent again, the write is made once", () =>
    withScope(async (own) => {
      const { store, newWrites } = open(own, server.url);
      await store.open();
      const swaps = newWrites(60);
      await server.kill("SIGSTOP");
      expect(kindsOf(await swapAll(store, swaps))).toEqual(["unknown"]);
      await server.kill("SIGCONT");
      await until("it answers", () => works(store));
      const results = await swapAll(store, swaps);
      for (const [at, { version }] of swaps.entries()) {
        const result = results[at];
        const isMade =
          result?.kind === "written" || (result?.kind === "conflict" && result.current?.version === version);
        expect(isMade).toBe(true);
      }
      expect((await store.counts()).waiting).toBe(swaps.length);
    }));

  it("because it cannot be reached has written nothing", () =>
    withScope(async (own) => {
      const proxy = await NetworkProxy.start(own, Number(new URL(server.url).port));
      const { store, newWrites } = open(own, `mysql://root@127.0.0.1:${new URL(proxy.url).port}/shop`);
      await store.open();
      proxy.refuse(true);
      await until("the connections are known to be gone", async () =>
        kindsOf(await swapAll(store, newWrites(1))).includes("not-written"),
      );
      proxy.refuse(false);
      expect(kindsOf(await swapAll(store, newWrites(3)))).toEqual(["written"]);
    }));

  it("because it was killed has every write that it has confirmed, and no half of a write", () =>
    withScope(async (own) => {
      const { store, newWrites } = open(own, server.url);
      await store.open();
      const confirmed: Swap[] = [];
      let isKilled = false;
      const writing = (async () => {
        for (const swap of newWrites(5_000)) {
          const [result] = await swapAll(store, [{ ...swap, at: store.now(swap.key) }]);
          if (result?.kind === "written") confirmed.push(swap);
          if (isKilled) return;
        }
      })();
      await until("some are confirmed", () => confirmed.length > 50);
      await server.kill("SIGKILL");
      isKilled = true;
      await writing;
      await server.start();
      admin = await createConnection({ uri: server.url, multipleStatements: true });
      await until("it answers", () => works(store));
      const found = await store.read(confirmed.map(({ key }) => key));
      expect(found.map((one) => one?.version)).toEqual(confirmed.map(({ version }) => version));
      expect(await store.findLoss?.(confirmed.slice(0, 32))).toBeNull();
    }));
});
