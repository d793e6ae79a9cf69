/** `replicated`: what a primary has acknowledged is with a replica, or is not confirmed. */
import { Cluster } from "ioredis";
import { expect, it } from "vitest";
import type { RecordStore } from "../../packages/core/src/inbox/contract/store.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import { acceptedRecord, endedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { type PutRecord, put, putAll } from "../../packages/core/src/testing/store/writes.ts";
import { type Environment, environmentOf } from "../../packages/core/src/time/environment.ts";
import { NetworkProxy } from "../faults/harness/proxy.ts";
import { RedisServer, startCluster } from "../faults/harness/redis-server.ts";
import { type Scope, until, withScope } from "../faults/harness/scope.ts";
import { redisStoreFixture } from "./redis-store-fixture.ts";

const COMMAND_TIMEOUT_MS = 1_500;
const MINUTE_MS = 60_000;
const [one, two, three] = [keyOf(1), keyOf(2), keyOf(3)] as const;

async function startReplica(scope: Scope, primary: RedisServer): Promise<RedisServer> {
  const replica = await RedisServer.start(scope, { replicaOf: primary.port });
  await followed(primary, replica);
  return replica;
}

/** Both ends know that the replica has everything, and say so to each other. */
async function followed(primary: RedisServer, replica: RedisServer): Promise<void> {
  await until("the replica follows", async () => (await replica.info("master_link_status")) === "up");
  await until("the primary waits for it", async () =>
    [await primary.info("slave0"), await primary.info("slave1")].some(
      (line) => line.includes(`port=${replica.port},`) && line.includes("state=online"),
    ),
  );
}

async function openStore(
  scope: Scope,
  url: string,
  clock: Environment = environmentOf(),
  commandTimeoutMs = COMMAND_TIMEOUT_MS,
): Promise<RecordStore> {
  const options = { replicas: 1, commandTimeoutMs, clock };
  const fixture = redisStoreFixture(() => url, options);
  const store = scope.add(fixture.connect(), (it) => it.close());
  await store.open();
  return store;
}

/** A clock that can be put on. */
function clockAhead() {
  let aheadMs = 0;
  const real = environmentOf();
  return {
    clock: { ...real, monotonic: () => real.monotonic() + aheadMs },
    advance: (ms: number) => {
      aheadMs += ms;
    },
  };
}

/** True if these records are confirmed; how long that takes is the store's affair. */
async function isReplicated(store: RecordStore, ...records: readonly PutRecord[]): Promise<boolean> {
  if (store.replicated === undefined) throw new Error("It confirms nothing.");
  return store.replicated(records).then(
    () => true,
    () => false,
  );
}

const fresh = (store: RecordStore, key: string): Promise<PutRecord> =>
  put(store, key, null, acceptedRecord(key, store.now(key)));

it("confirms records, although commandTimeoutMs is no whole number", { timeout: 60_000 }, () =>
  withScope(async (scope) => {
    const primary = await RedisServer.start(scope);
    await startReplica(scope, primary);
    const store = await openStore(scope, primary.url, environmentOf(), COMMAND_TIMEOUT_MS + 0.5);
    expect(await isReplicated(store, await fresh(store, one))).toBe(true);
  }),
);

it(
  "a confirmed record is on a replica; while there is no replica, nothing is confirmed",
  { timeout: 60_000 },
  () =>
    withScope(async (scope) => {
      const primary = await RedisServer.start(scope);
      const replica = await startReplica(scope, primary);
      const store = await openStore(scope, primary.url);
      expect(store.durability).toBe("replicated");
      const records = new Map(
        Array.from(
          { length: 200 },
          (_, n) => [keyOf(n), acceptedRecord(keyOf(n), store.now(keyOf(n)))] as const,
        ),
      );
      const written = [...(await putAll(store, records)).values()];
      const confirmed = await Promise.all(written.map((record) => isReplicated(store, record)));
      expect(confirmed.every(Boolean)).toBe(true);
      expect(Number(await replica.tell("DBSIZE"))).toBe(Number(await primary.tell("DBSIZE")));

      replica.freeze();
      const late = await fresh(store, keyOf(1_000));
      expect(await isReplicated(store, late)).toBe(false);
      replica.thaw();
      await until("the replica has it", () => isReplicated(store, late));
    }),
);

it(
  "a record that was changed since it was written is confirmed, and a missing one is not",
  { timeout: 60_000 },
  () =>
    withScope(async (scope) => {
      const primary = await RedisServer.start(scope);
      await startReplica(scope, primary);
      const store = await openStore(scope, primary.url);
      const first = await fresh(store, one);
      expect(await isReplicated(store, first)).toBe(true);
      const second = await put(store, one, first, endedRecord(one, store.now(one), first.record));
      const other = await fresh(store, two);
      expect(await isReplicated(store, first, second, other)).toBe(true);
      expect(await isReplicated(store, first, { ...other, key: three })).toBe(false);
      // The fate of one call says nothing of another's.
      const both = [isReplicated(store, { ...other, key: three }), isReplicated(store, other)];
      expect(await Promise.all(both)).toEqual([false, true]);
    }),
);

it(
  "the new primary after a failover confirms the records that it still has, and none that it has lost",
  { timeout: 60_000 },
  () =>
    withScope(async (scope) => {
      const primary = await RedisServer.start(scope);
      const proxy = await NetworkProxy.start(scope, primary.port);
      const next = await startReplica(scope, primary);
      await startReplica(scope, primary);
      const { clock, advance } = clockAhead();
      const store = await openStore(scope, proxy.url, clock);
      const [first, other] = [await fresh(store, one), await fresh(store, two)];
      expect(await isReplicated(store, first, other)).toBe(true);
      advance(MINUTE_MS);
      // It learns the server's time anew.
      await store.read([one]);

      // The other replica may be the one that has confirmed them.
      await until(
        "the next primary has them too",
        async () => Number(await next.tell("DBSIZE")) === Number(await primary.tell("DBSIZE")),
      );
      await next.tell("REPLICAOF", "NO", "ONE");
      const lost = await put(store, one, first, endedRecord(one, store.now(one), first.record));
      const never = await fresh(store, three);
      await startReplica(scope, next);
      proxy.target = next.port;
      proxy.reset();
      await until("the store has found the new primary", () =>
        sendCanary(store).then(
          () => true,
          () => false,
        ),
      );
      // An older version of the record is there, and it is not taken for a newer one, although a canary has passed since.
      expect(await isReplicated(store, lost)).toBe(false);
      expect(await isReplicated(store, never)).toBe(false);
      await until("the new primary is confirmed", () => isReplicated(store, first, other));
      const again = await put(store, one, first, endedRecord(one, store.now(one), first.record));
      advance(MINUTE_MS);
      expect(await isReplicated(store, again, first)).toBe(true);
    }),
);

it(
  "each node of a cluster confirms its own records, and a node without a replica confirms none",
  { timeout: 90_000 },
  () =>
    withScope(async (scope) => {
      const primaries = await startCluster(scope);
      const extra = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"];
      const replicas: RedisServer[] = [];
      for (const primary of primaries) {
        const id = String(await primary.tell("CLUSTER", "MYID"));
        const replica = await RedisServer.start(scope, { aof: "none", extra });
        await replica.tell("CLUSTER", "MEET", "127.0.0.1", primary.port);
        await until(
          "it may follow",
          async () => (await replica.tell("CLUSTER", "REPLICATE", id).catch(() => null)) === "OK",
        );
        await followed(primary, replica);
        replicas.push(replica);
      }
      const connect = (): Cluster =>
        new Cluster(
          primaries.map(({ port }) => ({ host: "127.0.0.1", port })),
          { lazyConnect: true },
        );
      const fixture = redisStoreFixture(connect, { replicas: 1, commandTimeoutMs: COMMAND_TIMEOUT_MS });
      const store = scope.add(fixture.connect(), (it) => it.close());
      await store.open();
      const keys = Array.from({ length: 100 }, (_, n) => keyOf(n));
      const records = new Map(keys.map((key) => [key, acceptedRecord(key, store.now(key))] as const));
      const written = [...(await putAll(store, records)).values()];
      expect(await isReplicated(store, ...written)).toBe(true);

      const [first] = replicas;
      first?.freeze();
      const more = new Map(
        keys.map(
          (_, n) => [keyOf(1_000 + n), acceptedRecord(keyOf(1_000 + n), store.now(keyOf(n)))] as const,
        ),
      );
      const later = [...(await putAll(store, more)).values()];
      const confirmed = await Promise.all(later.map((record) => isReplicated(store, record)));
      const share = confirmed.filter(Boolean).length / confirmed.length;
      expect(share).toBeGreaterThan(0.4);
      expect(share).toBeLessThan(0.9);
      first?.thaw();
      await until("all of it is confirmed", () => isReplicated(store, ...later));
    }),
);

it("a full primary still confirms the records that its replica has", { timeout: 60_000 }, () =>
  withScope(async (scope) => {
    const primary = await RedisServer.start(scope);
    await startReplica(scope, primary);
    const store = await openStore(scope, primary.url);
    const first = await fresh(store, one);
    await primary.tell("CONFIG", "SET", "maxmemory", "1");
    const end = await put(store, one, first, endedRecord(one, store.now(one), first.record));
    expect(await isReplicated(store, end)).toBe(true);
  }),
);
