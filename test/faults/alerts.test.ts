/** Redis is away for ten minutes, and people are told of it twice: when it begins, and when it is over. */
import { it } from "vitest";
import { alertsOfAnOutage, OUTAGE_MS } from "./harness/alerts-cases.ts";
import { RedisServer } from "./harness/redis-server.ts";

it(
  "three processes send one message when an outage of Redis begins, and one when it is over",
  {
    timeout: 3 * OUTAGE_MS + 120_000,
  },
  () =>
    alertsOfAnOutage(async (scope) => {
      const redis = await RedisServer.start(scope);
      return {
        inbox: { kind: "redis", target: redis.url },
        kill: () => redis.kill(),
        up: () => redis.up(),
      };
    }),
);
