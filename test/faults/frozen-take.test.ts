/** A process is stopped while Redis hands it large records: the others run everything, and soon. */
import { describe, it } from "vitest";
import { stopInTake } from "./harness/frozen-take.ts";
import { RedisServer, startCluster } from "./harness/redis-server.ts";
import { withScope } from "./harness/scope.ts";

describe("a process that is stopped in the middle of a take holds nothing that others need", () => {
  const options = { timeout: 120_000 };

  it("on one server", options, () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      await stopInTake(scope, { kind: "redis", target: server.url });
    }),
  );

  it("behind a Sentinel", options, () =>
    withScope(async (scope) => {
      const primary = await RedisServer.start(scope);
      const sentinel = await RedisServer.startSentinel(scope, primary.port);
      await stopInTake(scope, { kind: "redis", target: { sentinel: sentinel.port } });
    }),
  );

  it("on a cluster of three nodes", options, () =>
    withScope(async (scope) => {
      const [node] = await startCluster(scope);
      await stopInTake(scope, { kind: "redis", target: { cluster: node?.port ?? 0 } });
    }),
  );
});
