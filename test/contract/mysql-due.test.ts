import { mysqlStore } from "@payhooks/core/mysql";
import { type Connection, createConnection, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, it } from "vitest";
import { type MariadbServer, startMariadb } from "../effects/mariadb-server.ts";
import { silent } from "../support/silent.ts";
import { dueBoundCases } from "./due-bound-cases.ts";
import { mysqlStoreFixture } from "./mysql-store-fixture.ts";

let server: MariadbServer;
let admin: Connection;
beforeAll(async () => {
  server = await startMariadb(["--innodb-flush-log-at-trx-commit=0"]);
  admin = await createConnection(server.url);
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const cases = dueBoundCases({
  async open(own) {
    const { prefix, ...fixture } = mysqlStoreFixture(() => server.url);
    const store = own.add(fixture.connect(), (one) => one.close());
    await store.open();
    const connect = (options = {}) =>
      own.add(mysqlStore(server.url, { prefix, logger: silent, ...options }), (one) => one.close());
    return { table: `${prefix}_records`, store, connect };
  },
  tell: (sql) => admin.query(sql),
  async lock(own, query) {
    const holder = own.add(await createConnection(server.url), (one) => one.end());
    await holder.query("START TRANSACTION");
    await holder.query(query);
    return () => holder.query("ROLLBACK");
  },
  async lockTable(own, table) {
    const holder = own.add(await createConnection(server.url), (one) => one.end());
    await holder.query(`LOCK TABLES ${table} WRITE`);
    return () => holder.query("UNLOCK TABLES");
  },
  async cancelLooks(table) {
    const [looks] = await admin.query<RowDataPacket[]>(
      `SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'
      AND info LIKE ? AND info NOT LIKE '%SKIP LOCKED%'`,
      `%${table}%`,
    );
    for (const { id } of looks) await admin.query(`KILL QUERY ${id}`);
    return looks.length;
  },
});
for (const { name, run } of cases) it(name, run);
