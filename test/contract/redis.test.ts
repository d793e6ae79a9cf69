import { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { inboxContract } from "./inbox-contract.ts";
import { redisCases, redisGround } from "./redis-ground.ts";

const scope = new Scope();
let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start(scope);
});
afterAll(() => scope.close());

inboxContract("Redis", () => redisGround(() => new Redis(server.url, { lazyConnect: true })), redisCases, {
  concurrent: true,
});
