/** A bulk replay that is killed in the middle, on PostgreSQL, with a ledger that books every payment once. */
import { afterAll, beforeAll, describe } from "vitest";
import { runsAgain } from "./harness/again-cases.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { Scope } from "./harness/scope.ts";

const servers = new Scope();
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start(servers);
});
afterAll(() => servers.close());

describe("a bulk replay", () => {
  runsAgain({
    name: "PostgreSQL",
    inboxAt: async () => ({ kind: "postgres", target: await server.create("inbox") }),
    ledgerAt: () => server.create("ledger"),
  });
});
