/** A process is stopped while Redis hands it large records: the others run everything, and soon. */
import { it } from "vitest";
import { stopInTake } from "./harness/frozen-take.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { withScope } from "./harness/scope.ts";

it(
  "a process that is stopped in the middle of a take holds nothing that others need",
  { timeout: 120_000 },
  () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      await stopInTake(scope, { kind: "redis", target: server.url });
    }),
);
