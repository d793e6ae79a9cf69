/** PostgreSQL is away for ten minutes, and people are told of it twice: when it begins, and when it is over. */
import { it } from "vitest";
import { alertsOfAnOutage, OUTAGE_MS } from "./harness/alerts-cases.ts";
import { PostgresServer } from "./harness/postgres-server.ts";

it(
  "three processes send one message when an outage of PostgreSQL begins, and one when it is over",
  {
    timeout: 3 * OUTAGE_MS + 120_000,
  },
  () =>
    alertsOfAnOutage(async (scope) => {
      const postgres = await PostgresServer.start(scope);
      return {
        inbox: { kind: "postgres", target: postgres.url },
        kill: () => postgres.kill(),
        up: () => postgres.up(),
      };
    }),
);
