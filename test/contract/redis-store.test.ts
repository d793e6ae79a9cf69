import { storeContract } from "@payhooks/core/testing/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { acceptedRecord, endedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put } from "../../packages/core/src/testing/store/writes.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, withScope } from "../faults/harness/scope.ts";
import { redisStoreFixture, redisTraits } from "./redis-store-fixture.ts";

const scope = new Scope();
let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start(scope);
  client = scope.add(new Redis(server.url), (one) => one.disconnect());
});
afterAll(() => scope.close());

describe("the store contract: Redis", () => {
  for (const { name, run } of storeContract(() => redisStoreFixture(() => server.url), redisTraits))
    it.concurrent(name, run);
});

describe("the store contract: Redis by a client that can do no more than run scripts", () => {
  const evalOnly = {
    eval: (script: string, keys: string[], args: string[]) =>
      client.eval(script, keys.length, ...keys, ...args),
  };
  const traits = { ...redisTraits, announces: false };
  for (const { name, run } of storeContract(() => redisStoreFixture(() => evalOnly), traits))
    it.concurrent(name, run);
});

it("a finished record takes at most 430 bytes, its key included, and expires by itself", () =>
  withScope(async (own) => {
    const fixture = redisStoreFixture(() => server.url, { prefix: "payhooks" });
    const store = own.add(fixture.connect(), (one) => one.close());
    await store.open();
    const key = keyOf(1);
    const now = store.now(key);
    const sample = { id: crypto.randomUUID(), referenceId: `order-${crypto.randomUUID()}` };
    const waiting = await put(store, key, null, acceptedRecord(key, now, sample));
    await put(store, key, waiting, endedRecord(key, now, waiting.record));
    const [name = ""] = (await server.tell("KEYS", `payhooks:*:${key}`)) as string[];
    expect(Number(await server.tell("MEMORY", "USAGE", name))).toBeLessThanOrEqual(430);
    expect(Number(await server.tell("PTTL", name))).toBeGreaterThan(0);
    // Of its shard nothing else is left.
    const tag = /\{\w+\}/.exec(name)?.[0] ?? "";
    expect(await server.tell("KEYS", `payhooks:${tag}:*`)).toEqual([name]);
  }));

it("the store of Redis keeps no list of finished events, and says so", () =>
  withScope(async (own) => {
    const store = own.add(redisStoreFixture(() => server.url).connect(), (one) => one.close());
    await store.open();
    for (const state of ["finished", "any"] as const) {
      await expect(store.list({ state }, null, 10)).rejects.toMatchObject({ code: "ERR_NOT_SEARCHABLE" });
    }
  }));
