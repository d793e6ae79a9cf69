import { Cluster } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { type RedisServer, startCluster } from "../faults/harness/redis-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { inboxContract } from "./inbox-contract.ts";
import { redisGround, wayCases } from "./redis-ground.ts";

const scope = new Scope();
let nodes: readonly RedisServer[] = [];
beforeAll(async () => {
  nodes = await startCluster(scope);
}, 60_000);
afterAll(() => scope.close());

inboxContract(
  "a Redis Cluster of three nodes",
  () =>
    redisGround(
      () =>
        new Cluster(
          nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
          { lazyConnect: true },
        ),
    ),
  wayCases,
  { concurrent: true },
);
