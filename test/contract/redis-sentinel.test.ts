import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { Scope, until } from "../faults/harness/scope.ts";
import { crashCases } from "./crash-cases.ts";
import { inboxContract } from "./inbox-contract.ts";
import { leaseCases } from "./lease-cases.ts";
import { redisGround } from "./redis-ground.ts";

const scope = new Scope();
let primary: RedisServer;
let sentinel: RedisServer;

beforeAll(async () => {
  primary = await RedisServer.start(scope);
  const replica = await RedisServer.start(scope, { replicaOf: primary.port });
  await until("the replica follows", async () => (await replica.info("master_link_status")) === "up");
  sentinel = await RedisServer.startSentinel(scope, primary.port);
  await until(
    "the Sentinel knows the replica",
    async () => ((await sentinel.tell("SENTINEL", "REPLICAS", "payhooks")) as unknown[]).length === 1,
    { withinMs: 30_000 },
  );
}, 60_000);
afterAll(() => scope.close());

const ground = () =>
  redisGround(
    () =>
      new Redis({
        sentinels: [{ host: "127.0.0.1", port: sentinel.port }],
        name: "payhooks",
        lazyConnect: true,
      }),
  );

inboxContract("Redis behind a Sentinel", ground, leaseCases, { concurrent: true });

describe("a failover by the Sentinel", () => {
  it("makes the replica the primary", { timeout: 60_000 }, async () => {
    await until(
      "the Sentinel begins",
      async () => (await sentinel.tell("SENTINEL", "FAILOVER", "payhooks").catch(() => null)) === "OK",
      { withinMs: 30_000, everyMs: 200 },
    );
    const port = await until(
      "the Sentinel names another primary",
      async () => {
        const address = (await sentinel.tell("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "payhooks")) as string[];
        return Number(address[1]) === primary.port ? null : Number(address[1]);
      },
      { withinMs: 30_000 },
    );
    await until("the old primary follows", async () => (await primary.info("role")) === "slave", {
      withinMs: 30_000,
    });
    expect(port).not.toBe(primary.port);
  });
});

inboxContract("Redis after a failover by its Sentinel", ground, [...leaseCases, ...crashCases], {
  concurrent: true,
});
