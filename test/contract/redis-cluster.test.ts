import { storeContract } from "@payhooks/core/testing/store";
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RecordStore } from "../../packages/core/src/inbox/contract/store.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import {
  acceptedRecord,
  begunRecord,
  endedRecord,
  HOUR_MS,
  keyOf,
} from "../../packages/core/src/testing/store/records.ts";
import {
  put,
  putAll,
  swapAll,
  swapOf,
  takeOfBothLanes,
} from "../../packages/core/src/testing/store/writes.ts";
import { RedisServer, startCluster } from "../faults/harness/redis-server.ts";
import { Scope, until, withScope } from "../faults/harness/scope.ts";
import { redisStoreFixture, redisTraits } from "./redis-store-fixture.ts";

const scope = new Scope();
let nodes: readonly RedisServer[] = [];
beforeAll(async () => {
  nodes = await startCluster(scope);
});
afterAll(() => scope.close());

const connect = (): Cluster =>
  new Cluster(
    nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
    { lazyConnect: true },
  );

describe("the store contract: a Redis Cluster of three nodes", () => {
  for (const { name, run } of storeContract(() => redisStoreFixture(connect), {
    ...redisTraits,
    oldestOfAll: false,
  }))
    it.concurrent(name, run);
});

/** Takes an event through its life: it is accepted and begun, and it ends. */
async function live(store: RecordStore, keys: readonly string[]): Promise<void> {
  const records = new Map(
    keys.map((key) => {
      const now = store.now(key);
      return [key, begunRecord(key, now, acceptedRecord(key, now), HOUR_MS)] as const;
    }),
  );
  const written = await putAll(store, records);
  const ends = keys.map((key) => {
    const now = store.now(key);
    return swapOf(store, key, written.get(key) ?? null, endedRecord(key, now, acceptedRecord(key, now)));
  });
  for (const result of await swapAll(store, ends)) expect(result).toEqual({ kind: "written" });
}

describe("a cluster", { timeout: 60_000 }, () => {
  it("with one full node goes on with its events everywhere, and takes new events on the other nodes", () =>
    withScope(async (own) => {
      const alone = await startCluster(own);
      const cluster = new Cluster(
        alone.map(({ port }) => ({ host: "127.0.0.1", port })),
        { lazyConnect: true },
      );
      const store = own.add(redisStoreFixture(() => cluster).connect(), (one) => one.close());
      await store.open();
      const keys = Array.from({ length: 60 }, (_, n) => keyOf(n));
      const written = await putAll(
        store,
        new Map(keys.map((key) => [key, acceptedRecord(key, store.now(key))])),
      );
      await alone[0]?.tell("CONFIG", "SET", "maxmemory", "1");
      const { records } = await takeOfBothLanes(store, 100, HOUR_MS);
      expect(records.length).toBeGreaterThan(0);
      const ends = keys.map((key) => {
        const now = store.now(key);
        return swapOf(store, key, written.get(key) ?? null, endedRecord(key, now, acceptedRecord(key, now)));
      });
      for (const result of await swapAll(store, ends)) expect(result).toEqual({ kind: "written" });
      const others = Array.from({ length: 60 }, (_, n) => keyOf(100 + n));
      const added = others.map((key) => swapOf(store, key, null, acceptedRecord(key, store.now(key))));
      const kinds = new Set((await swapAll(store, added)).map(({ kind }) => kind));
      expect(kinds).toEqual(new Set(["written", "not-written"]));
    }));

  it("has as many records on each node as on the others, and as much work", () =>
    withScope(async (own) => {
      const store = own.add(redisStoreFixture(connect).connect(), (one) => one.close());
      await store.open();
      const load = async (): Promise<readonly { readonly keys: number; readonly scripts: number }[]> =>
        Promise.all(
          nodes.map(async (node) => ({
            keys: Number(await node.tell("DBSIZE")),
            scripts: Number(/^calls=(\d+)/.exec(await commandsOf(node))?.[1]),
          })),
        );
      const before = await load();
      for (let round = 0; round < 30; round++) {
        await live(
          store,
          Array.from({ length: 100 }, (_, n) => keyOf(10_000 + round * 100 + n)),
        );
        await takeOfBothLanes(store, 0, 0);
      }
      const after = await load();
      for (const what of ["keys", "scripts"] as const) {
        const shares = after.map((node, at) => node[what] - (before[at]?.[what] ?? 0));
        console.log(`${what} of each node: ${shares.join(", ")}`);
        expect(Math.min(...shares) / Math.max(...shares)).toBeGreaterThan(0.85);
      }
    }));

  it("refuses only the records of a slot that is being moved to another node, and only for a while", () =>
    withScope(async (own) => {
      const store = own.add(redisStoreFixture(connect).connect(), (one) => one.close());
      await store.open();
      const first = keyOf(1);
      await put(store, first, null, acceptedRecord(first, store.now(first)));
      const [from, to] = nodes;
      if (from === undefined || to === undefined) throw new Error("no nodes");
      const admin = own.add(connect(), (one) => one.disconnect());
      await admin.connect();
      const record = await recordOf(nodes, first);
      const slot = Number(await from.tell("CLUSTER", "KEYSLOT", record));
      const source = await nodeWith(nodes, slot);
      const target = source === from ? to : from;
      const [sourceId, targetId] = await Promise.all(
        [source, target].map((node) => node.tell("CLUSTER", "MYID").then(String)),
      );
      await target.tell("CLUSTER", "SETSLOT", slot, "IMPORTING", sourceId ?? "");
      await source.tell("CLUSTER", "SETSLOT", slot, "MIGRATING", targetId ?? "");

      const keys = Array.from({ length: 300 }, (_, n) => keyOf(20_000 + n));
      const swaps = keys.map((key) => swapOf(store, key, null, acceptedRecord(key, store.now(key))));
      const results = await swapAll(store, swaps);
      const refused = swaps.filter((_, at) => results[at]?.kind !== "written");
      expect(refused.length).toBeGreaterThan(0);
      expect(refused.length).toBeLessThan(20);
      expect(new Set(results.map(({ kind }) => kind))).toEqual(new Set(["written", "not-written"]));

      for (;;) {
        const moving = (await source.tell("CLUSTER", "GETKEYSINSLOT", slot, 100)) as string[];
        if (moving.length === 0) break;
        await source.tell("MIGRATE", "127.0.0.1", target.port, "", 0, 1_000, "KEYS", ...moving);
      }
      for (const node of [target, source])
        await node.tell("CLUSTER", "SETSLOT", slot, "NODE", targetId ?? "");
      const again = refused.map((swap) => ({ ...swap, at: store.now(swap.key) }));
      for (const result of await swapAll(store, again)) expect(result).toEqual({ kind: "written" });
      expect((await store.counts()).waiting).toBe(keys.length + 1);
      await sendCanary(store);
    }));

  it("goes on with the records of its other nodes while one is away", () =>
    withScope(async (own) => {
      const three = await startCluster(own);
      for (const node of three) await node.tell("CONFIG", "SET", "cluster-require-full-coverage", "no");
      const fixture = redisStoreFixture(
        () =>
          new Cluster(
            three.map(({ port }) => ({ host: "127.0.0.1", port })),
            { lazyConnect: true },
          ),
        { commandTimeoutMs: 500 },
      );
      const store = own.add(fixture.connect(), (one) => one.close());
      await store.open();
      const keys = Array.from({ length: 300 }, (_, n) => keyOf(n));
      await putAll(store, new Map(keys.map((key) => [key, acceptedRecord(key, store.now(key))] as const)));
      const [lost] = three;
      const away = Number(await lost?.tell("DBSIZE"));
      await lost?.kill();

      const taken = new Set<string>();
      await until("the rest is taken", async () => {
        const { records } = await takeOfBothLanes(store, 100, HOUR_MS);
        for (const { key } of records) taken.add(key);
        // A shard has more keys than records: its sets.
        return taken.size >= keys.length - away;
      });
      expect(taken.size).toBeGreaterThan(150);
      expect(taken.size).toBeLessThan(250);
      const swaps = keys.map((_, n) => {
        const key = keyOf(1_000 + n);
        return swapOf(store, key, null, acceptedRecord(key, store.now(key)));
      });
      const results = await swapAll(store, swaps);
      const written = results.filter(({ kind }) => kind === "written").length;
      expect(written).toBeGreaterThan(150);
      expect(written).toBeLessThan(250);
      await expect(sendCanary(store)).rejects.toThrow();
    }));

  it("behind a plain connection to one of its nodes is served shard by shard", () =>
    withScope(async (own) => {
      const node = await RedisServer.start(own, { aof: "none", extra: ["--cluster-enabled", "yes"] });
      await node.tell("CLUSTER", "ADDSLOTSRANGE", 0, 16383);
      await until("it serves", async () =>
        String(await node.tell("CLUSTER", "INFO")).includes("cluster_state:ok"),
      );
      const fixture = redisStoreFixture(() => new Redis(node.url, { lazyConnect: true }));
      const store = own.add(fixture.connect(), (one) => one.close());
      await store.open();
      const keys = Array.from({ length: 200 }, (_, n) => keyOf(n));
      await putAll(store, new Map(keys.map((key) => [key, acceptedRecord(key, store.now(key))])));
      const taken: string[] = [];
      while (taken.length < keys.length) {
        const { records, left } = await takeOfBothLanes(store, 50, HOUR_MS);
        expect(records.length).toBeGreaterThan(0);
        taken.push(...records.map(({ key }) => key));
        expect(left > 0).toBe(taken.length < keys.length);
      }
      expect(taken.toSorted()).toEqual(keys.toSorted());
    }));
});

async function commandsOf(node: RedisServer): Promise<string> {
  const text = String(await node.tell("INFO", "commandstats"));
  return /^cmdstat_evalsha:(.*)$/m.exec(text)?.[1] ?? "";
}

/** Redis's key of a record, wherever it is. */
async function recordOf(all: readonly RedisServer[], key: string): Promise<string> {
  for (const node of all) {
    const [found] = (await node.tell("KEYS", `*:${key}`)) as string[];
    if (found !== undefined) return found;
  }
  throw new Error(`${key} is nowhere`);
}

async function nodeWith(all: readonly RedisServer[], slot: number): Promise<RedisServer> {
  for (const node of all) {
    if (Number(await node.tell("CLUSTER", "COUNTKEYSINSLOT", slot)) > 0) return node;
  }
  throw new Error(`slot ${slot} is empty everywhere`);
}
