/** kill -9 of the process that receives and runs: under load, and right after each step of docs/durability.md. */
import { describe } from "vitest";
import { KILL_POINTS } from "./harness/child-config.ts";
import { type KillGround, killAfterSteps, killUnderLoad } from "./harness/kill-cases.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { isLong, lengthOf } from "./harness/report.ts";

const onRedis: KillGround = {
  name: "Redis",
  doublesPerKill: 0.05,
  inboxAt: async (scope) => ({ kind: "redis", target: (await RedisServer.start(scope)).url }),
};

// At full length the machine has nothing else to do: how many run twice depends on it.
const options = { concurrent: !isLong };
describe("kill -9 under load", options, () => killUnderLoad(onRedis, lengthOf(25, 1_000)));
describe("kill -9 right after a step", options, () => killAfterSteps(onRedis, KILL_POINTS, lengthOf(2, 20)));
