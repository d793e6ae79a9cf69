import { redisStore } from "@payhooks/core/redis";
import { storeContract } from "@payhooks/core/testing/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { IdempotencyRecord } from "../../packages/core/src/inbox/record/record.ts";
import { accepted, decided, ended, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { put, putAll } from "../../packages/core/src/testing/store/writes.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, withScope } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";
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

describe("the store contract: Redis, searchable", () => {
  const fixture = () => redisStoreFixture(() => server.url, { searchable: true });
  for (const { name, run } of storeContract(fixture, { ...redisTraits, listsFinished: true, finds: true }))
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

it("a finished record takes at most 430 bytes, its key included, and goes by itself", () =>
  withScope(async (own) => {
    const ground = redisStoreFixture(() => server.url, { prefix: "payhooks" });
    const store = own.add(ground.connect(), (one) => one.close());
    await store.open();
    const key = keyOf(1);
    const now = store.now(key);
    const sample = { id: crypto.randomUUID(), referenceId: `order-${crypto.randomUUID()}` };
    const waiting = await put(store, key, null, accepted(key, now, sample));
    await put(store, key, waiting, ended(key, now, waiting.record));
    const [name = ""] = (await server.tell("KEYS", `payhooks:*:${key}`)) as string[];
    expect(Number(await server.tell("MEMORY", "USAGE", name))).toBeLessThanOrEqual(430);
    expect(Number(await server.tell("PTTL", name))).toBeGreaterThan(0);
    // Of its shard nothing else is left.
    const tag = /\{\w+\}/.exec(name)?.[0] ?? "";
    expect(await server.tell("KEYS", `payhooks:${tag}:*`)).toEqual([name]);
  }));

it("searchable, a finished record takes at most 400 bytes more, which go when it does", () =>
  withScope(async (own) => {
    const ground = redisStoreFixture(() => server.url, { prefix: "found", searchable: true });
    const store = own.add(ground.connect(), (one) => one.close());
    await store.open();
    // As many as make each list a long one: a short one is kept otherwise.
    const events = 10_000;
    for (let n = 0; n < events; ) {
      const records = new Map<string, IdempotencyRecord>();
      for (const to = n + 500; n < to; n++) {
        const key = keyOf(n);
        const sample = { id: crypto.randomUUID(), referenceId: `order-${crypto.randomUUID()}` };
        const now = store.now(key);
        records.set(key, ended(key, now, accepted(key, now, sample)));
      }
      await putAll(store, records);
    }
    const bytesOf = async (names: readonly string[]): Promise<number> => {
      let bytes = 0;
      for (const name of names) bytes += Number(await server.tell("MEMORY", "USAGE", name, "SAMPLES", "0"));
      return bytes;
    };
    const references = ((await server.tell("KEYS", "found:*:ref:*")) as string[]).slice(0, 100);
    const lists = (await server.tell("KEYS", "found:*:finished")) as string[];
    expect([references.length, lists.length]).toEqual([100, 64]);
    const [ofReference, ofList] = [(await bytesOf(references)) / 100, (await bytesOf(lists)) / events];
    console.log(`bytes for each finished event: ${ofReference} by its reference, ${ofList} on its list`);
    expect(ofReference + ofList).toBeLessThanOrEqual(400);
    for (const name of references) expect(Number(await server.tell("PTTL", name))).toBeGreaterThan(0);
  }));

it("searchable, ended events whose record does not expire are not in the way of those whose record does", () =>
  withScope(async (own) => {
    const ground = redisStoreFixture(() => server.url, { prefix: "kept", searchable: true });
    const store = own.add(ground.connect(), (one) => one.close());
    await store.open();
    const key = keyOf(1);
    const now = store.now(key);
    const done = ended(key, now, accepted(key, now));
    const contradicted = accepted(key, now, { status: "FAILED", held: "conflict" }, done);
    const lists = async (): Promise<readonly string[]> =>
      ((await server.tell("KEYS", "kept:*:finished*")) as string[]).map((name) => name.replace(/^.*\}:/, ""));
    const listed = async (): Promise<number> =>
      (await store.list({ state: "finished" }, null, 10)).events.length;
    const first = await put(store, key, null, done);
    expect([await lists(), await listed()]).toEqual([["finished"], 1]);
    const second = await put(store, key, first, contradicted);
    expect([await lists(), await listed()]).toEqual([["finished:kept"], 1]);
    await put(store, key, second, decided(key, store.now(key), contradicted, "discard"));
    expect([await lists(), await listed()]).toEqual([["finished"], 2]);
  }));

it("what was not said to be searchable says so, and whoever only looks finds out by itself", () =>
  withScope(async (own) => {
    const ground = redisStoreFixture(() => server.url);
    const plain = own.add(ground.connect(), (one) => one.close());
    await plain.open();
    await expect(plain.find?.("order-1")).rejects.toMatchObject({ code: "ERR_NOT_SEARCHABLE" });
    await expect(plain.list({ state: "finished" }, null, 10)).rejects.toMatchObject({
      code: "ERR_NOT_SEARCHABLE",
    });
    const { prefix } = ground;
    const options = { prefix, logger: silent };
    const searchable = own.add(redisStore(server.url, { ...options, searchable: true }), (one) =>
      one.close(),
    );
    await searchable.open();
    const key = keyOf(1);
    await put(searchable, key, null, accepted(key, searchable.now(key), { referenceId: "order-1" }));
    const looking = own.add(redisStore(server.url, { ...options, existing: true }), (one) => one.close());
    await looking.open();
    expect(await looking.find?.("order-1")).toHaveLength(1);
    expect(await plain.list({ state: "finished" }, null, 10)).toEqual({ events: [], next: null });
  }));
