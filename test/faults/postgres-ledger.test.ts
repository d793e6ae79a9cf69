import { ledgerCases } from "./harness/ledger-cases.ts";
import { PostgresServer } from "./harness/postgres-server.ts";

ledgerCases({
  database: "PostgreSQL",
  start: (scope) => PostgresServer.start(scope),
  inboxAt: (target) => ({ kind: "postgres", target }),
  kills: 8,
});
