/** Failures of Redis: whether their writes may be made again, and what is left of them. */
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import type { RecordStore, Swap, SwapResult } from "../../packages/core/src/inbox/contract/store.ts";
import { describeError } from "../../packages/core/src/protocol/foreign-error.ts";
import { Shards } from "../../packages/core/src/redis/shards.ts";
import { sendCanary } from "../../packages/core/src/testing/store/canaries.ts";
import {
  acceptedRecord,
  begunRecord,
  endedRecord,
  keyOf,
} from "../../packages/core/src/testing/store/records.ts";
import {
  expectSame,
  put,
  readOne,
  swapAll,
  swapOf,
  takeOfBothLanes,
} from "../../packages/core/src/testing/store/writes.ts";
import { NetworkProxy } from "../faults/harness/proxy.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { type Scope, until, withScope } from "../faults/harness/scope.ts";
import { kindsOf, newRecordWrites } from "./new-record-writes.ts";
import { backlog, expectBegun, expectEnded, expectSubjectTaken, fill } from "./redis-out-of-memory.ts";
import { redisStoreFixture } from "./redis-store-fixture.ts";

const COMMAND_TIMEOUT_MS = 500;

async function opened(
  scope: Scope,
  url: string,
  commandTimeoutMs = COMMAND_TIMEOUT_MS,
): Promise<RecordStore> {
  const fixture = redisStoreFixture(() => url, { commandTimeoutMs });
  const store = scope.add(fixture.connect(), (one) => one.close());
  await store.open();
  return store;
}

/** True if each of the writes was made, now or when it was sent before. */
function areMade(swaps: readonly Swap[], results: readonly SwapResult[]): boolean {
  return swaps.every(({ version }, at) => {
    const result = results[at];
    return result?.kind === "written" || (result?.kind === "conflict" && result.current?.version === version);
  });
}

describe("a Redis that refuses to write", { timeout: 60_000 }, () => {
  it.each([
    [
      "has too few replicas",
      ["CONFIG", "SET", "min-replicas-to-write", "1"],
      ["CONFIG", "SET", "min-replicas-to-write", "0"],
    ],
    ["was demoted", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
    [
      "forbids scripts",
      ["ACL", "SETUSER", "default", "-evalsha", "-eval"],
      ["ACL", "SETUSER", "default", "+evalsha", "+eval"],
    ],
  ] as const)(
    "because it %s says so, and takes the same writes afterwards",
    (_, [refuse, ...by], [allow, ...how]) =>
      withScope(async (scope) => {
        const server = await RedisServer.start(scope);
        const store = await opened(scope, server.url);
        const known = await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
        await sendCanary(store);
        await server.tell(refuse, ...by);
        const swaps = newRecordWrites(store, 120);
        const begin = swapOf(
          store,
          known.key,
          known,
          begunRecord(known.key, store.now(known.key), known.record, 1_000),
        );
        expect(kindsOf(await swapAll(store, [...swaps, begin]))).toEqual(["not-written"]);
        await expect(sendCanary(store)).rejects.toThrow();
        await server.tell(allow, ...how);
        await until("it takes writes", () =>
          sendCanary(store).then(
            () => true,
            () => false,
          ),
        );
        expectSame(await readOne(store, known.key), known);
        expect((await store.counts()).waiting).toBe(1);
        const again = [...swaps, begin].map((swap) => ({ ...swap, at: store.now(swap.key) }));
        expect(kindsOf(await swapAll(store, again))).toEqual(["written"]);
        expect((await store.counts()).waiting).toBe(swaps.length);
      }),
  );
});

describe("a Redis that is full", { timeout: 60_000 }, () => {
  const repeated = (kind: SwapResult["kind"], count = 1) => Array.from({ length: count }, () => kind);
  const kinds = (results: readonly SwapResult[]) => results.map(({ kind }) => kind);

  it("takes nothing new, alone or beside ends of events, and says why", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const store = await opened(scope, server.url);
      const running = await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
      const pending = await put(
        store,
        keyOf(2),
        null,
        acceptedRecord(keyOf(2), store.now(keyOf(2)), { status: "PENDING" }),
      );
      await fill(server);
      const swaps = newRecordWrites(store, 120);
      const refused = await swapAll(store, swaps);
      expect(kinds(refused)).toEqual(repeated("not-written", 120));
      expect(describeError((refused[0] as { cause?: unknown }).cause)).toBe("ReplyError: OOM");
      // A further event of a record that is there makes the record grow as a new one would.
      const now = store.now(keyOf(2));
      const further = swapOf(store, keyOf(2), pending, acceptedRecord(keyOf(2), now, {}, pending.record));
      const end = swapOf(store, keyOf(1), running, endedRecord(keyOf(1), now, running.record));
      const mixed = await swapAll(store, [...newRecordWrites(store, 2), further, end]);
      expect(kinds(mixed)).toEqual([...repeated("not-written", 3), "written"]);
      await expectSubjectTaken(store);
      await expect(sendCanary(store)).rejects.toThrow();
      await server.tell("CONFIG", "SET", "maxmemory", "0");
      const again = [...swaps, further].map((swap) => ({ ...swap, at: store.now(swap.key) }));
      expect(kinds(await swapAll(store, again))).toEqual(repeated("written", 121));
    }));

  it("goes on with the events that it has until all have ended", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const fixture = redisStoreFixture(() => server.url);
      const connect = () => scope.add(fixture.connect(), (one) => one.close());
      const store = connect();
      await store.open();
      await backlog(store);
      /** The memory of all keys. The server's own total also has buffers and scripts. */
      const used = async (): Promise<number> => {
        const sizes = ((await server.tell("KEYS", "*")) as readonly string[]).map((key) =>
          server.tell("MEMORY", "USAGE", key),
        );
        return (await Promise.all(sizes)).reduce<number>((sum, size) => sum + Number(size), 0);
      };
      const before = await used();
      await fill(server);
      // A process that starts now opens it too.
      const next = connect();
      await next.open();
      for (let round = 0; round < 3; round++) await expectBegun(next);
      expect(await used()).toBeLessThan(before * 1.5);
      await expectEnded(next);
      expect(await used()).toBeLessThan(before);
    }));
});

describe("data that vanishes from Redis", { timeout: 60_000 }, () => {
  it.each([
    [
      "a record",
      (prefix: string) => ["DEL", `${new Shards(prefix).shardOf(keyOf(1)).keyOf(keyOf(1))}`],
      "missing",
    ],
    [
      "the set of due records",
      (prefix: string) => ["DEL", new Shards(prefix).shardOf(keyOf(1)).due.usual],
      "missing",
    ],
    ["a list", (prefix: string) => ["DEL", new Shards(prefix).shardOf(keyOf(1)).keyOf("waiting")], "missing"],
    [
      "the id of the data set",
      (prefix: string) => ["DEL", new Shards(prefix).all[0].keyOf("dataset-id")],
      "replaced",
    ],
    ["everything", () => ["FLUSHDB"], "replaced"],
  ] as const)("%s is reported once", (_, command, why) =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const fixture = redisStoreFixture(() => server.url);
      const store = scope.add(fixture.connect(), (one) => one.close());
      await store.open();
      const swaps = [1, 2, 3].map((n) =>
        swapOf(store, keyOf(n), null, acceptedRecord(keyOf(n), store.now(keyOf(n)))),
      );
      await swapAll(store, swaps);
      await takeOfBothLanes(store, 2, 60_000);
      expect(await store.findLoss?.(swaps)).toBeNull();
      const [name = "", ...args] = command(fixture.prefix);
      await server.tell(name, ...args);
      expect(await store.findLoss?.(swaps)).toBe(why);
      expect(await store.findLoss?.([])).toBeNull();
    }),
  );
});

describe("a Redis that does not answer", { timeout: 60_000 }, () => {
  it("leaves the outcome of a write open: sent again, the write is made once", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const store = await opened(scope, server.url);
      server.freeze();
      const swaps = newRecordWrites(store, 60);
      expect(kindsOf(await swapAll(store, swaps))).toEqual(["unknown"]);
      server.thaw();
      await until("it answers", () =>
        sendCanary(store).then(
          () => true,
          () => false,
        ),
      );
      expect(areMade(swaps, await swapAll(store, swaps))).toBe(true);
      expect((await store.counts()).waiting).toBe(swaps.length);
    }));

  it("leaves the outcome of a write open that was sent again after the connection broke, and refused then", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const proxy = await NetworkProxy.start(scope, server.port);
      const store = await opened(scope, proxy.url, 10_000);
      const [first, swap] = newRecordWrites(store, 2);
      if (first === undefined || swap === undefined) expect.fail("no write");
      // From now on the server knows the script, so that one command makes the write.
      expect(kindsOf(await store.swap([{ ...first, at: store.now(first.key) }]))).toEqual(["written"]);
      // Every answer takes seconds to come back, so that the connection breaks after the write and before its answer.
      proxy.latencyMs = 4_000;
      const swapping = store.swap([{ ...swap, at: store.now(swap.key) }]);
      await until("it is written", async () => String(await server.tell("KEYS", `*${swap.key}*`)) !== "");
      await server.tell("ACL", "SETUSER", "default", "-evalsha", "-eval");
      proxy.latencyMs = 0;
      proxy.reset();
      expect(kindsOf(await swapping)).toEqual(["unknown"]);
    }));

  it("has written nothing that could not be sent", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const proxy = await NetworkProxy.start(scope, server.port);
      const store = await opened(scope, proxy.url);
      proxy.refuse(true);
      const [swap] = newRecordWrites(store, 1);
      if (swap === undefined) expect.fail("no write");
      await until("the connection is known to be gone", async () => {
        const [result] = await store.swap([{ ...swap, at: store.now(swap.key) }]);
        return result?.kind === "not-written";
      });
      proxy.refuse(false);
      await until("it is back", () =>
        sendCanary(store).then(
          () => true,
          () => false,
        ),
      );
      expect(await store.swap([{ ...swap, at: store.now(swap.key) }])).toEqual([{ kind: "written" }]);
    }));
});

describe("a write that Redis cannot take", { timeout: 60_000 }, () => {
  it("is refused alone, and the writes beside it are made", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const store = await opened(scope, server.url);
      await server.tell("CONFIG", "SET", "proto-max-bulk-len", 1024 * 1024);
      const swaps = newRecordWrites(store, 10);
      const [first, ...others] = swaps;
      if (first === undefined) expect.fail("no write");
      const content = Buffer.alloc(2 * 1024 * 1024, "a");
      const long = swapOf(
        store,
        first.key,
        null,
        acceptedRecord(first.key, store.now(first.key), { content }),
      );
      const [refused, ...made] = await swapAll(store, [long, ...others]);
      expect(refused?.kind).toBe("refused");
      expect(areMade(others, made)).toBe(true);
      expect((await store.counts()).waiting).toBe(others.length);
    }));

  it("a write whose set belongs to another program has an unknown outcome and blocks no other write", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const admin = scope.add(new Redis(server.url), (one) => one.disconnect());
      const fixture = redisStoreFixture(() => server.url);
      const store = scope.add(fixture.connect(), (one) => one.close());
      await store.open();
      const shards = new Shards(fixture.prefix);
      const swaps = newRecordWrites(store, 200);
      await put(store, keyOf(1), null, acceptedRecord(keyOf(1), store.now(keyOf(1))));
      const [due = ""] = await admin.keys(`${fixture.prefix}:*:due`);
      await admin.set(due, "not ours");
      const results = await swapAll(store, swaps);
      for (const [at, swap] of swaps.entries()) {
        const isBlocked = shards.shardOf(swap.key).due.usual === due;
        const result = results[at];
        if (result === undefined || isBlocked) expect(result?.kind).toBe("unknown");
        else expect(areMade([swap], [result])).toBe(true);
      }
    }));
});
