import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, withScope } from "../faults/harness/scope.ts";
import { storeContract } from "./store-contract.ts";
import { accepted, ended, keyOf, put } from "./store-records.ts";
import { redisStoreGround, redisTraits } from "./store-redis-ground.ts";

const scope = new Scope();
let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start(scope);
  client = scope.add(new Redis(server.url), (one) => one.disconnect());
});
afterAll(() => scope.close());

storeContract("Redis", () => redisStoreGround(() => server.url), redisTraits, { concurrent: true });

storeContract(
  "Redis by a client that can do no more than run scripts",
  () =>
    redisStoreGround(() => ({
      eval: (script: string, keys: string[], args: string[]) =>
        client.eval(script, keys.length, ...keys, ...args),
    })),
  { ...redisTraits, announces: false },
  { concurrent: true },
);

it("a finished record takes at most 300 bytes, its key included, and goes by itself", () =>
  withScope(async (own) => {
    const ground = redisStoreGround(() => server.url, { prefix: "payhooks" });
    const store = own.add(ground.connect(), (one) => one.close());
    await store.open();
    const key = keyOf(1);
    const now = store.now(key);
    const sample = { id: crypto.randomUUID(), referenceId: `order-${crypto.randomUUID()}` };
    const waiting = await put(store, key, null, accepted(key, now, sample));
    await put(store, key, waiting, ended(key, now, waiting.record));
    const [name = ""] = (await server.tell("KEYS", `payhooks:*:${key}`)) as string[];
    expect(Number(await server.tell("MEMORY", "USAGE", name))).toBeLessThanOrEqual(300);
    expect(Number(await server.tell("PTTL", name))).toBeGreaterThan(0);
    // Of its shard nothing else is left.
    const tag = /\{\w+\}/.exec(name)?.[0] ?? "";
    expect(await server.tell("KEYS", `payhooks:${tag}:*`)).toEqual([name]);
  }));
