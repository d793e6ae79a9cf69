import { afterAll, beforeAll } from "vitest";
import { type MariadbServer, startMariadb } from "../effects/mariadb-server.ts";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import { mysqlGround } from "./mysql-ground.ts";
import { redisKind } from "./redis-ground.ts";

let server: MariadbServer;
beforeAll(async () => {
  server = await startMariadb(["--innodb-flush-log-at-trx-commit=0"]);
});
afterAll(() => server.stop());

// The cases of every server on which time is real.
inboxContract("MariaDB", () => mysqlGround(server.url), redisKind, {
  cases: casesOfSlowStores,
  concurrent: true,
});
