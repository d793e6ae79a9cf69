import { storeContract } from "@payhooks/core/testing/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RecordStore, Swap } from "../../packages/core/src/inbox/contract/store.ts";
import { describeError } from "../../packages/core/src/protocol/foreign-error.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { expectSame, put, readOne, swapOf } from "../../packages/core/src/testing/store/writes.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, until, withScope } from "../faults/harness/scope.ts";
import { backlog, expectBegun, expectEnded, fill } from "./redis-out-of-memory.ts";
import { redisStoreFixture, redisTraits } from "./redis-store-fixture.ts";

interface Watched {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  readonly sentinel: RedisServer;
  connect(): Redis;
}

/** A primary and its replica, and a Sentinel that watches both. */
async function watched(scope: Scope): Promise<Watched> {
  const primary = await RedisServer.start(scope);
  const replica = await RedisServer.startReplica(scope, primary);
  const sentinel = await RedisServer.startSentinel(scope, primary.port);
  await until(
    "the Sentinel knows the replica",
    async () => ((await sentinel.tell("SENTINEL", "REPLICAS", "payhooks")) as unknown[]).length === 1,
    { withinMs: 30_000 },
  );
  const sentinels = [{ host: "127.0.0.1", port: sentinel.port }];
  return {
    primary,
    replica,
    sentinel,
    connect: () => new Redis({ sentinels, name: "payhooks", lazyConnect: true }),
  };
}

/** The Sentinel makes the replica the primary, and the primary a replica. */
async function failOver({ primary, sentinel }: Watched): Promise<void> {
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
}

const scope = new Scope();
let servers: Watched;
beforeAll(async () => {
  servers = await watched(scope);
});
afterAll(() => scope.close());

const connect = (): Redis => servers.connect();

it(
  "a store goes on at the primary that the Sentinel makes, and finds the confirmed records there",
  {
    timeout: 90_000,
  },
  () =>
    withScope(async (own) => {
      const fixture = redisStoreFixture(connect, { replicas: 1 });
      const store = own.add(fixture.connect(), (one) => one.close());
      await store.open();
      const known = await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
      await store.replicated?.([known]);
      let woken = 0;
      await store.onDue?.(() => {
        woken++;
        return true;
      });

      await failOver(servers);
      await until("writes are taken", () =>
        sendCanary(store).then(
          () => true,
          () => false,
        ),
      );
      expectSame(await readOne(store, known.key), known);
      const next = await put(store, keyOf(2), null, acceptedRecord(keyOf(2), store.now(keyOf(2))), {
        shouldAnnounce: true,
      });
      await until(
        "it is confirmed by the old primary, which is a replica now",
        () =>
          store.replicated?.([known, next]).then(
            () => true,
            () => false,
          ) ?? null,
      );
      await until("hints go on", async () => {
        await put(store, keyOf(3 + woken), null, acceptedRecord(keyOf(3 + woken), store.now(keyOf(3))), {
          shouldAnnounce: true,
        }).catch(() => {});
        return woken > 0;
      });
    }),
);

it(
  "a full Redis goes on with the events that it has until all have ended, also at the primary that the Sentinel makes",
  { timeout: 90_000 },
  () =>
    withScope(async (own) => {
      const full = await watched(own);
      const fixture = redisStoreFixture(full.connect, { replicas: 1 });
      const store = own.add(fixture.connect(), (one) => one.close());
      await store.open();
      await backlog(store);
      for (const server of [full.primary, full.replica]) await fill(server);
      await expectBegun(store);
      await until("the replica has all of it", async () => {
        const [link, read] = [
          await full.replica.info("master_link_status"),
          await full.replica.info("slave_repl_offset"),
        ];
        return link === "up" && Number(read) >= Number(await full.primary.info("master_repl_offset"));
      });
      await full.primary.kill();
      await until("the replica is the primary", async () => (await full.replica.info("role")) === "master", {
        withinMs: 30_000,
      });
      await until("it is reached, and full", async () => {
        const [refused] = await store.swap([fresh(store)]);
        return /OOM/.test(describeError((refused as { cause?: unknown }).cause));
      });
      await expectBegun(store);
      // A process that starts now opens it too.
      const next = own.add(fixture.connect(), (one) => one.close());
      await next.open();
      await expectBegun(next);
      await expectEnded(store);
      await full.replica.tell("CONFIG", "SET", "maxmemory", "0");
      expect(await next.swap([fresh(next)])).toEqual([{ kind: "written" }]);
    }),
);

const fresh = (store: RecordStore): Swap =>
  swapOf(store, keyOf(99), null, acceptedRecord(keyOf(99), store.now(keyOf(99))));

describe("the store contract: Redis after a failover by its Sentinel", () => {
  for (const { name, run } of storeContract(() => redisStoreFixture(connect), redisTraits))
    it.concurrent(name, run);
});
