import { afterAll, beforeAll } from "vitest";
import { type MariadbServer, startMariadb } from "../effects/mariadb-server.ts";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import { mysqlInboxFixture } from "./mysql-inbox-fixture.ts";
import { redisKind } from "./redis-inbox-fixture.ts";

let server: MariadbServer;
beforeAll(async () => {
  server = await startMariadb(["--innodb-flush-log-at-trx-commit=0"]);
});
afterAll(() => server.stop());

// The cases of every server on which time is real.
inboxContract("MariaDB", () => mysqlInboxFixture(server.url), redisKind, {
  cases: casesOfSlowStores,
  concurrent: true,
});
