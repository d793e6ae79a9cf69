/** The inbox works whatever the settings of the server, of the address and of the pool are, or the start says what is wrong. */
import { type MysqlTarget, mysqlInbox, mysqlStore } from "@payhooks/core/mysql";
import { type Connection, createConnection, createPool } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Connections, connectionSettingsOf, loadDriver } from "../../packages/core/src/mysql/client.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { swapAll, swapOf, takeOfBothLanes } from "../../packages/core/src/testing/store/writes.ts";
import { environmentOf } from "../../packages/core/src/time/environment.ts";
import { type MariadbServer, startMariadb } from "../effects/mariadb-server.ts";
import { testEvent } from "../faults/harness/events.ts";
import { deliver, startReceiver } from "../faults/harness/receivers.ts";
import { type Scope, until, withScope } from "../faults/harness/scope.ts";
import { keys } from "../faults/harness/system.ts";
import { silent } from "../support/silent.ts";
import { kindsOf } from "./new-record-writes.ts";

let server: MariadbServer;
let admin: Connection;
beforeAll(async () => {
  server = await startMariadb([
    ...["--autocommit=0", "--completion-type=RELEASE", "--default-time-zone=+05:45"],
    ...["--sql-mode=NO_BACKSLASH_ESCAPES,ANSI_QUOTES", "--transaction-isolation=SERIALIZABLE"],
    ...["--character-set-server=gbk", "--skip-character-set-client-handshake"],
  ]);
  admin = await createConnection({ uri: server.url, multipleStatements: true });
  await admin.query(
    "SET GLOBAL sql_select_limit = 1; SET GLOBAL unique_checks = 0; SET GLOBAL sql_safe_updates = 1",
  );
});
afterAll(async () => {
  admin.destroy();
  await server.stop();
});

let stores = 0;
const prefixed = () => `setup_${process.pid}_${++stores}`;
const open = async (own: Scope, target: MysqlTarget) => {
  const store = own.add(mysqlStore(target, { prefix: prefixed(), logger: silent }), (one) => one.close());
  await store.open();
  return store;
};

/** Texts whose end would be found too early, or not at all, if they were escaped for another session. */
const REFERENCES = ["a'..\\'", "\\", "' OR 1=1 -- ", "诚'", "诚\\", '"', "`", "\u{1F600}'", "%_"];

/** Each record is found by its reference, and by nothing else. */
async function expectFinds(own: Scope, target: MysqlTarget): Promise<void> {
  const store = await open(own, target);
  const swaps = REFERENCES.map((referenceId, n) =>
    swapOf(
      store,
      keyOf(n),
      null,
      acceptedRecord(keyOf(n), store.now(keyOf(n)), { id: referenceId, foundBy: [referenceId] }),
    ),
  );
  expect(kindsOf(await swapAll(store, swaps))).toEqual(["written"]);
  for (const [n, id] of REFERENCES.entries()) {
    const { events } = await store.list({ id }, null, 10);
    expect(events.map((one) => [one.eventId.startsWith(keyOf(n)), one.summary?.id])).toEqual([[true, id]]);
  }
  expect((await store.list({}, null, 100)).events).toHaveLength(REFERENCES.length);
  expect((await takeOfBothLanes(store, 100, 60_000)).records).toHaveLength(REFERENCES.length);
  expect(await store.findLoss?.(swaps)).toBeNull();
}

describe("a server with other settings than the inbox needs", () => {
  it("uses the settings that the inbox needs in the inbox's sessions", () =>
    withScope(async (own) => {
      const connections = own.add(
        new Connections(await loadDriver(), connectionSettingsOf(server.url), 1, environmentOf(), 5_000),
        (one) => one.close(),
      );
      for (let round = 0; round < 2; round++) {
        const [[row] = []] = await connections.run([
          [
            `SELECT @@sql_mode AS mode, @@autocommit AS auto, @@completion_type AS completion, @@tx_isolation AS level,
            @@time_zone AS zone, @@sql_select_limit AS at_most, @@unique_checks AS checks, @@sql_safe_updates AS safe,
            @@character_set_client AS client, @@character_set_connection AS connection, @@character_set_results AS results`,
          ],
        ]);
        expect(row).toMatchObject({
          ...{
            mode: "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION",
            auto: 1,
            completion: "NO_CHAIN",
            zone: "+00:00",
          },
          ...{ level: "READ-COMMITTED", checks: 1, safe: 0 },
          ...{ client: "utf8mb4", connection: "utf8mb4", results: "utf8mb4" },
        });
        expect(Number(row?.at_most)).toBeGreaterThan(1e15);
      }
    }));

  it("finds each event by its own reference", () => withScope((own) => expectFinds(own, server.url)));

  it("runs every event once, lists all of them, and reports no loss", () =>
    withScope(async (own) => {
      const inbox = mysqlInbox(server.url, { prefix: prefixed(), pollMs: 100, logger: silent });
      const ran: string[] = [];
      const { receiver, notices } = await startReceiver(own, inbox, (one) =>
        one.onDeposit(({ payTxnId }) => void ran.push(payTxnId)),
      );
      for (let n = 0; n < 20; n++) expect(await deliver(receiver, testEvent(keys.privateKey))).toBe(200);
      await until("all have run", () => ran.length === 20);
      await until("all are finished", async () => {
        const { events } = await receiver.events.list({ state: "finished" });
        return events.length === 20;
      });
      expect(notices.filter(({ type }) => type === "data-lost" || type === "inbox-error")).toEqual([]);
    }));
});

describe("an address with settings of a pool", () => {
  it.each(["resetOnRelease=true", "reset%4FnRelease=1", "waitForConnections=false", "queueLimit=1"])(
    "keeps the settings of sessions, and every statement gets its connection: %s",
    (setting) =>
      withScope(async (own) => {
        const url = `${server.url}?${setting}`;
        await expectFinds(own, url);
        const store = await open(own, url);
        await Promise.all(Array.from({ length: 20 }, () => store.read([keyOf(1)])));
      }),
  );

  it("keeps the others", () => {
    const url =
      "mysql://us%40er:p%2Fw@[::1]:3307/shop?ssl=%7B%22rejectUnauthorized%22%3Atrue%7D&enableKeepAlive=false";
    expect(connectionSettingsOf(url)).toEqual({ uri: url });
    expect(connectionSettingsOf(`${url}&resetOnRelease=true`)).toEqual({ uri: url });
  });
});

describe("a pool", () => {
  it("hands over what the driver needs to reach the server, and nothing of its own that it lacks", async () => {
    const pool = createPool({ uri: server.url, disableEval: true, enableCleartextPlugin: true });
    expect(connectionSettingsOf(pool)).toMatchObject({
      disableEval: true,
      enableCleartextPlugin: true,
      database: "shop",
    });
    await pool.end();
    // An earlier version of the driver does not know these options, and complains of each one that it is given.
    const earlier = { getConnection: () => {}, config: { connectionConfig: { host: "db", user: "shop" } } };
    expect(connectionSettingsOf(earlier)).toEqual({ host: "db", user: "shop" });
  });
});

it("the start names the format of a binary log that cannot have writes at READ COMMITTED", () =>
  withScope(async (own) => {
    const settings = ["--log-bin", "--binlog-format=STATEMENT"];
    const { url } = own.add(await startMariadb(settings), (one) => one.stop());
    await expect(open(own, url)).rejects.toThrow(/binary log.*STATEMENT.*Set binlog_format to ROW or MIXED/s);
  }));
