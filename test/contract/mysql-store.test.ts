import { storeContract } from "@payhooks/core/testing/store";
import mysql from "mysql2";
import { createPool } from "mysql2/promise";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type MariadbServer, startMariadb } from "../effects/mariadb-server.ts";
import { mysqlStoreFixture, mysqlTraits } from "./mysql-store-fixture.ts";

/** A machine that crashes is not the contract's to test. */
const FAST = ["--innodb-flush-log-at-trx-commit=0"];

let server: MariadbServer;
let pool: mysql.Pool;
let odd: ReturnType<typeof createPool>;
beforeAll(async () => {
  server = await startMariadb(FAST);
  pool = mysql.createPool(server.url);
  // Settings that a program may have chosen for its own answers.
  odd = createPool({
    uri: server.url,
    charset: "latin1",
    timezone: "+05:30",
    dateStrings: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    decimalNumbers: true,
    namedPlaceholders: true,
    rowsAsArray: true,
    nestTables: "_",
    typeCast: () => "odd",
    connectionLimit: 1,
  });
});
afterAll(async () => {
  pool.end();
  await odd.end();
  await server.stop();
});

describe("the store contract: MariaDB by a pool of mysql2", () => {
  for (const { name, run } of storeContract(() => mysqlStoreFixture(() => pool), mysqlTraits))
    it.concurrent(name, run);
});

describe("the store contract: MariaDB by a pool of mysql2/promise that reads everything in its own way", () => {
  for (const { name, run } of storeContract(() => mysqlStoreFixture(() => odd), mysqlTraits))
    it.concurrent(name, run);
});
