import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { newSeed, withScope } from "../faults/harness/scope.ts";
import { playModel } from "./model.ts";
import { redisInboxFixture } from "./redis-inbox-fixture.ts";

it("random deliveries by parallel clients on Redis are answered as by the model", { timeout: 120_000 }, () =>
  withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const fixture = redisInboxFixture(() => new Redis(redis.url, { lazyConnect: true }));
    scope.add(fixture, (one) => one.close());
    const seed = newSeed("model, Redis");
    const { commands, orders } = await playModel(fixture, { seed, transactions: 100, rounds: 8 });
    expect(commands).toBeGreaterThan(1_000);
    expect(orders).toBeGreaterThanOrEqual(800);
  }),
);
