/**
 * Every store gives the same answers to the same random histories. `PAYHOOKS_AGREEMENT=100000` plays so many histories, from
 * another seed each time. `PAYHOOKS_SEED=7` begins with that seed.
 */
import { PGlite } from "@electric-sql/pglite";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { hasRedis } from "../../../scripts/redis-server.mjs";
import { RedisServer } from "../../faults/harness/redis-server.ts";
import { Scope } from "../../faults/harness/scope.ts";
import { expectAgreement, requestedHistories, timeout } from "./expect-agreement.ts";
import { memoryKind, simulatedKind, sqliteKind, tableKind } from "./kinds.ts";
import { redisKind, scriptedRedisKind, shardedRedisKind } from "./redis-kinds.ts";

it("the simulated store, memory, SQLite and the store of the documentation agree", { timeout }, async () => {
  const database = new PGlite();
  await expectAgreement(
    [simulatedKind, memoryKind, sqliteKind(), tableKind(database)],
    requestedHistories || 80,
  );
  await database.close();
});

describe.skipIf(!hasRedis())("with a redis-server", () => {
  const scope = new Scope();
  let client: Redis;
  beforeAll(async () => {
    const server = await RedisServer.start(scope, { aof: "none" });
    await RedisServer.startReplica(scope, server);
    client = scope.add(new Redis(server.url), (one) => one.disconnect());
  });
  afterAll(() => scope.close());

  it("the simulated store and Redis, by each of its clients, agree", { timeout }, () =>
    expectAgreement(
      [simulatedKind, redisKind(client, 1), scriptedRedisKind(client)],
      requestedHistories || 60,
    ),
  );

  it("the simulated store and Redis agree if each shard is polled separately", { timeout }, () =>
    expectAgreement([simulatedKind, shardedRedisKind(client)], requestedHistories || 20, 1),
  );
});
