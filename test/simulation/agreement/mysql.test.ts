/** MariaDB gives the same answers as the simulated store, and a mistake in a statement of it is found. */
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAX_AGE_MS } from "../../../packages/core/src/sql/due-bound.ts";
import { type MariadbServer, startMariadb } from "../../effects/mariadb-server.ts";
import { asked, expectAgreement, timeout } from "./expect-agreement.ts";
import { findDifference } from "./find.ts";
import { simulated } from "./kinds.ts";
import { mysqlKind, mysqlMutants } from "./mysql-kinds.ts";

const simulatedMysql = simulated(MAX_AGE_MS);
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

it("the simulated store and MariaDB agree", { timeout }, () =>
  expectAgreement([simulatedMysql, mysqlKind(server.url, admin)], asked || 20, 4),
);

/** No more than are played above. */
const HISTORIES = 20;

describe("a MariaDB that", { timeout: 120_000 }, () => {
  for (const mutant of mysqlMutants) {
    it(mutant.name, async () => {
      let met = 0;
      const kind = mysqlKind(server.url, admin, mutant, () => met++);
      const found = await findDifference(1, HISTORIES, [simulatedMysql, kind]);
      expect(met, "statements that were changed").toBeGreaterThan(0);
      if (found === null) expect.fail(`${HISTORIES} histories do not see that it ${mutant.name}`);
    });
  }
});
