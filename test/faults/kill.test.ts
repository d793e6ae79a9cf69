/** kill -9 of the process that receives and runs: under load, and right before and after each write to the store. */
import { describe } from "vitest";
import { type KillFixture, killAtPoints, killUnderLoad } from "./harness/kill-cases.ts";
import { KILL_POINTS, REPLICA_POINTS } from "./harness/kill-points.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { isLong, lengthOf } from "./harness/report.ts";

/** At full length the machine has nothing else to do; in the short form other tests run beside these. */
const doublesPerKill = isLong ? 0.05 : 2;

const onRedis: KillFixture = {
  name: "Redis",
  doublesPerKill,
  inboxAt: async (scope) => ({ kind: "redis", target: (await RedisServer.start(scope)).url }),
};

const onReplicas: KillFixture = {
  name: "Redis, replicas: 1",
  doublesPerKill,
  inboxAt: async (scope) => {
    const primary = await RedisServer.start(scope);
    await RedisServer.startReplica(scope, primary);
    return { kind: "redis", target: primary.url, replicas: 1 };
  },
};

const options = { concurrent: !isLong };
describe("kill -9 under load", options, () => killUnderLoad(onRedis, lengthOf(10, 1_000)));
describe("kill -9 at a point", options, () => {
  killAtPoints(onRedis, KILL_POINTS, lengthOf(1, 10));
  killAtPoints(onReplicas, REPLICA_POINTS, lengthOf(2, 10));
});
