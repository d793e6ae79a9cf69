/** A process is stopped while PostgreSQL hands it large records: the others run everything, and soon. */
import { it } from "vitest";
import { stopInTake } from "./harness/frozen-take.ts";
import { PostgresServer } from "./harness/postgres-server.ts";
import { withScope } from "./harness/scope.ts";

it(
  "a process that is stopped in the middle of a take holds nothing that others need",
  { timeout: 120_000 },
  () =>
    withScope(async (scope) => {
      const server = await PostgresServer.start(scope);
      await stopInTake(scope, { kind: "postgres", target: server.url });
    }),
);
