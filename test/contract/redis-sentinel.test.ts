import { storeContract } from "@payhooks/core/testing/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import { accepted, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { expectSame, put, readOne } from "../../packages/core/src/testing/store/writes.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, until, withScope } from "../faults/harness/scope.ts";
import { redisStoreFixture, redisTraits } from "./redis-store-fixture.ts";

const scope = new Scope();
let primary: RedisServer;
let sentinel: RedisServer;

beforeAll(async () => {
  primary = await RedisServer.start(scope);
  const replica = await RedisServer.start(scope, { replicaOf: primary.port });
  await until("the replica follows", async () => (await replica.info("master_link_status")) === "up");
  sentinel = await RedisServer.startSentinel(scope, primary.port);
  await until(
    "the Sentinel knows the replica",
    async () => ((await sentinel.tell("SENTINEL", "REPLICAS", "payhooks")) as unknown[]).length === 1,
    { withinMs: 30_000 },
  );
});
afterAll(() => scope.close());

const connect = (): Redis =>
  new Redis({
    sentinels: [{ host: "127.0.0.1", port: sentinel.port }],
    name: "payhooks",
    lazyConnect: true,
  });

it(
  "a store goes on at the primary that the Sentinel makes, and has there what was confirmed",
  {
    timeout: 90_000,
  },
  () =>
    withScope(async (own) => {
      const ground = redisStoreFixture(connect, { replicas: 1 });
      const store = own.add(ground.connect(), (one) => one.close());
      await store.open();
      const known = await put(store, keyOf(1), null, accepted(keyOf(1), store.now(keyOf(1))));
      await store.settled?.([known]);
      let woken = 0;
      await store.onDue?.(() => {
        woken++;
        return true;
      });

      await until(
        "the Sentinel begins",
        async () => (await sentinel.tell("SENTINEL", "FAILOVER", "payhooks").catch(() => null)) === "OK",
        { withinMs: 30_000, everyMs: 200 },
      );
      await until(
        "the old primary follows",
        // It ends its connections when its role changes.
        async () => (await primary.info("role").catch(() => null)) === "slave",
        { withinMs: 30_000 },
      );
      await until("writes are taken", () =>
        sendCanary(store).then(
          () => true,
          () => false,
        ),
      );
      expectSame(await readOne(store, known.key), known);
      const next = await put(store, keyOf(2), null, accepted(keyOf(2), store.now(keyOf(2))), {
        announce: true,
      });
      await until(
        "it is confirmed by the old primary, which is a replica now",
        () =>
          store.settled?.([known, next]).then(
            () => true,
            () => false,
          ) ?? null,
      );
      await until("hints go on", async () => {
        await put(store, keyOf(3 + woken), null, accepted(keyOf(3 + woken), store.now(keyOf(3))), {
          announce: true,
        }).catch(() => {});
        return woken > 0;
      });
    }),
);

describe("the store contract: Redis after a failover by its Sentinel", () => {
  for (const { name, run } of storeContract(() => redisStoreFixture(connect), redisTraits))
    it.concurrent(name, run);
});
