import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RedisServer, startCluster } from "../faults/harness/redis-server.ts";
import { Scope, until, withScope } from "../faults/harness/scope.ts";
import { inboxContract } from "./inbox-contract.ts";
import { redisGround, wayCases } from "./redis-ground.ts";
import { rigOn } from "./rig.ts";
import { newId, sampleEvent, sampleRunner, workAll } from "./sample-events.ts";

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

it(
  "a cluster's node behind a plain connection: what cannot be written together is written one by one",
  {
    timeout: 60_000,
  },
  () =>
    withScope(async (own) => {
      const node = await RedisServer.start(own, { aof: "none", extra: ["--cluster-enabled", "yes"] });
      await node.tell("CLUSTER", "ADDSLOTSRANGE", 0, 16383);
      await until("it serves", async () =>
        String(await node.tell("CLUSTER", "INFO")).includes("cluster_state:ok"),
      );
      const rig = own.add(rigOn(redisGround(() => new Redis(node.url, { lazyConnect: true }))), (one) =>
        one.close(),
      );
      const { inbox } = rig.start();
      await inbox.ready();
      const accepts = Array.from({ length: 40 }, () => inbox.accept(sampleEvent(newId(), rig.now())));
      expect((await Promise.all(accepts)).map(({ outcome }) => outcome)).toEqual(Array(40).fill("new"));
      const runner = sampleRunner();
      await workAll(inbox, runner);
      expect(runner.ran).toHaveLength(40);
    }),
);
