/** The start checks the settings of Redis, and explains the wrong ones. */
import { redisStore, type ScriptClient } from "@payhooks/core/redis";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import type { RecordStore } from "../../packages/core/src/inbox/contract/store.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { swapOf } from "../../packages/core/src/testing/store/writes.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { type Scope, withScope } from "../faults/harness/scope.ts";

/** Opens a store; answers what it warned about. */
async function warningsOf(
  scope: Scope,
  target: Parameters<typeof redisStore>[0],
): Promise<readonly string[]> {
  const warnings: string[] = [];
  const logger = { info: () => {}, warn: (line: string) => void warnings.push(line), error: () => {} };
  const store: RecordStore = scope.add(redisStore(target, { logger }), (one) => one.close());
  await store.open();
  return warnings;
}

describe("a store in Redis", { timeout: 60_000 }, () => {
  it("is content with a server that keeps an append-only file and evicts nothing", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      expect(await warningsOf(scope, server.url)).toEqual([]);
    }));

  it("warns about a server that keeps nothing on its disk", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope, { aof: "none" });
      expect(await warningsOf(scope, server.url)).toEqual([expect.stringContaining("append-only file")]);
    }));

  it("warns about a server that does not say how it is set up", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      await server.tell("ACL", "SETUSER", "default", "-info");
      // Nor does its connection ask whether it is ready.
      const url = `${server.url}?enableReadyCheck=false`;
      expect(await warningsOf(scope, url)).toEqual([expect.stringContaining("does not say")]);
    }));

  it.each([
    ["ZADD", ["-zadd"]],
    ["ZREM", ["-zrem"]],
    ["SET", ["-set"]],
    ["to run scripts", ["-evalsha"]],
    ["to run scripts", ["-eval"]],
    ["SET", ["resetkeys", "~other:*"]],
  ])("refuses a user who may not do everything: %s", (lacking, rules) =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      await server.tell("ACL", "SETUSER", "shop", "on", "nopass", "~*", "&*", "+@all", ...rules);
      const url = server.url.replace("redis://", "redis://shop:any@");
      const store = scope.add(redisStore(url), (one) => one.close());
      await expect(store.open()).rejects.toMatchObject({
        code: "ERR_REDIS_UNSUITABLE",
        message: expect.stringContaining(lacking),
      });
      await server.tell("ACL", "SETUSER", "shop", "+@all", "allkeys");
      await store.open();
    }),
  );

  it("refuses a server that evicts keys, and starts when it no longer does", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      await server.tell("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
      const store = scope.add(redisStore(server.url), (one) => one.close());
      await expect(store.open()).rejects.toMatchObject({ code: "ERR_REDIS_UNSUITABLE" });
      await server.tell("CONFIG", "SET", "maxmemory-policy", "noeviction");
      await store.open();
    }));

  it("has another datasetId when its data was replaced", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const store = scope.add(redisStore(server.url), (one) => one.close());
      await store.open();
      const before = store.datasetId;
      await store.open();
      expect(store.datasetId).toBe(before);
      await server.tell("FLUSHALL");
      await store.open();
      expect(store.datasetId).not.toBe(before);
    }));

  it("refuses a connection that prefixes keys: a scan would find none of them", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const connection = scope.add(new Redis(server.port, { keyPrefix: "app:" }), (one) => one.disconnect());
      for (const target of [connection, `${server.url}/0?keyPrefix=app:`]) {
        const store = scope.add(redisStore(target), (one) => one.close());
        await expect(store.open()).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
      }
    }));

  it("gives up on a client of the program's own that never answers, and does not know the outcome of the write", () =>
    withScope(async (scope) => {
      const server = await RedisServer.start(scope);
      const redis = scope.add(server.client(), (one) => one.disconnect());
      let isSilent = false;
      const client: ScriptClient = {
        eval: (script, keys, args) =>
          isSilent ? new Promise(() => {}) : redis.eval(script, keys.length, ...keys, ...args),
      };
      const store = scope.add(redisStore(client, { commandTimeoutMs: 300 }), (one) => one.close());
      await store.open();
      const key = keyOf(1);
      const swap = swapOf(store, key, null, acceptedRecord(key, store.now(key)));
      isSilent = true;
      expect(await store.swap([swap])).toMatchObject([{ kind: "unknown" }]);
      isSilent = false;
      expect(await store.swap([swap])).toMatchObject([{ kind: "written" }]);
    }));

  it("needs an address, and a connection for replicas", async () => {
    await expect(redisStore(undefined).open()).rejects.toMatchObject({ code: "ERR_OPTION_MISSING" });
    await expect(redisStore("redis://u:p/w@h").open()).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    expect(() => redisStore("redis://localhost", { replicas: Number.NaN })).toThrow(
      expect.objectContaining({ code: "ERR_OPTION_INVALID" }),
    );
    expect(() => redisStore({ eval: async () => null }, { replicas: 1 })).toThrow(
      expect.objectContaining({ code: "ERR_OPTION_INVALID" }),
    );
  });
});
