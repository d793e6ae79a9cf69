/** A bulk replay that is killed in the middle, on MariaDB, with a ledger that books every payment once. */
import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe } from "vitest";
import { type MariadbServer, startMariadb } from "../effects/mariadb-server.ts";
import { runsAgain } from "./harness/again-cases.ts";

let server: MariadbServer;
beforeAll(async () => {
  server = await startMariadb();
});
afterAll(() => server.stop());

async function create(name: string): Promise<string> {
  const connection = await createConnection(server.url);
  await connection.query(`CREATE DATABASE ${name}`);
  await connection.end();
  return server.url.replace(/\/shop$/, `/${name}`);
}

describe("a bulk replay", () => {
  runsAgain({
    name: "MariaDB",
    inboxAt: async () => ({ kind: "mysql", target: await create("inbox") }),
    ledgerAt: () => create("ledger"),
  });
});
