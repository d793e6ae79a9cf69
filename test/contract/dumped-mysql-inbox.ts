/** An inbox on MariaDB whose database can be dumped and searched. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { mysqlInbox } from "@payhooks/core/mysql";
import { startMariadb } from "../effects/mariadb-server.ts";
import { silent } from "../support/silent.ts";
import type { DumpedInboxes } from "./dumped-inboxes.ts";

export const DUMPED_MYSQL_INBOXES: DumpedInboxes = {
  "a dump of MariaDB": async (scope) => {
    const server = scope.add(await startMariadb(), (one) => one.stop());
    const { hostname, port, pathname } = new URL(server.url);
    const dump = promisify(execFile);
    const from = ["--no-defaults", "-uroot", `-h${hostname}`, `-P${port}`, pathname.slice(1)];
    return {
      open: (seal) => mysqlInbox(server.url, { logger: silent, seal }),
      dump: async () => (await dump("mariadb-dump", from)).stdout,
    };
  },
};
