/** MariaDB gives the same answers as the simulated store. The histories find every mistake in its statements. */
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAX_WRITE_AGE_MS } from "../../../packages/core/src/sql/due-bound.ts";
import { type MariadbServer, startMariadb } from "../../effects/mariadb-server.ts";
import { expectAgreement, requestedHistories, timeout } from "./expect-agreement.ts";
import { findDifference } from "./find.ts";
import { simulated } from "./kinds.ts";
import { mysqlKind, mysqlMutants } from "./mysql-kinds.ts";

const simulatedMysql = simulated(MAX_WRITE_AGE_MS);
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
  expectAgreement([simulatedMysql, mysqlKind(server.url, admin)], requestedHistories || 20, 4),
);

/** Not more than are played above. */
const HISTORIES = 20;

describe("a MariaDB store that", { timeout: 120_000 }, () => {
  for (const mutant of mysqlMutants) {
    it(mutant.name, async () => {
      let changed = 0;
      const kind = mysqlKind(server.url, admin, mutant, () => changed++);
      const found = await findDifference(1, HISTORIES, [simulatedMysql, kind]);
      expect(changed, "changed statements").toBeGreaterThan(0);
      if (found === null) expect.fail(`${HISTORIES} histories do not show that it ${mutant.name}.`);
    });
  }
});
