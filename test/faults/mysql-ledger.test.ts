import { createConnection } from "mysql2/promise";
import { startMariadb } from "../effects/mariadb-server.ts";
import { ledgerCases } from "./harness/ledger-cases.ts";

ledgerCases({
  database: "MariaDB",
  async start(scope) {
    const server = scope.add(await startMariadb(), (one) => one.stop());
    return {
      async create(name) {
        const connection = await createConnection(server.url);
        await connection.query(`CREATE DATABASE ${name}`);
        await connection.end();
        return server.url.replace(/\/shop$/, `/${name}`);
      },
      kill: () => server.kill("SIGKILL"),
      up: () => server.start(),
    };
  },
  inboxAt: (target) => ({ kind: "mysql", target }),
  kills: 5,
});
