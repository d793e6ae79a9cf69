import { Cluster } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { RedisServer, startCluster } from "../faults/harness/redis-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { storeContract } from "./store-contract.ts";
import { redisStoreGround, redisTraits } from "./store-redis-ground.ts";

const scope = new Scope();
let server: RedisServer;
let nodes: readonly RedisServer[] = [];
beforeAll(async () => {
  server = await RedisServer.start(scope);
  nodes = await startCluster(scope);
}, 60_000);
afterAll(() => scope.close());

storeContract("Redis", () => redisStoreGround(() => server.url), redisTraits, { concurrent: true });
storeContract(
  "a Redis Cluster of three nodes",
  () =>
    redisStoreGround(
      () =>
        new Cluster(
          nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
          { lazyConnect: true },
        ),
    ),
  { ...redisTraits, oldestOfAll: false },
  { concurrent: true },
);
