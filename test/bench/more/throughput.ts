/** Events per second from the request to the finished record, through Redis, with one process and with two. */
import type { SignedDelivery } from "@payhooks/core/testing";
import type { RedisServer } from "../../faults/harness/redis-server.ts";
import { pause } from "../../faults/harness/scope.ts";
import { senderTo } from "../load.ts";
import type { ThroughputFigures } from "../results.ts";
import type { ServerProcess } from "../server.ts";

export async function measureThroughput(
  servers: readonly ServerProcess[],
  redis: RedisServer,
  deliveries: readonly SignedDelivery[],
): Promise<ThroughputFigures> {
  await redis.tell("FLUSHALL");
  const variant = { framework: "express", scheme: "rsa", mode: "redis" } as const;
  const targets = await Promise.all(servers.map((server) => server.tell({ do: "open", variant })));
  const senders = targets.map((target) => senderTo(target, 64 / servers.length));
  const read = () => Promise.all(servers.map((server) => server.tell({ do: "read", handled: 0 })));
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const redisCpu = async (): Promise<number> =>
    1e6 * (Number(await redis.info("used_cpu_user")) + Number(await redis.info("used_cpu_sys")));
  const [before, redisBefore, startedAt] = [await read(), await redisCpu(), performance.now()];
  await Promise.all(
    senders.map((sender, at) => sender.send(deliveries.filter((_, n) => n % servers.length === at))),
  );
  let after = await read();
  while (sum(after.map(({ handled }) => handled)) < deliveries.length) {
    await pause(20);
    after = await read();
  }
  const ms = performance.now() - startedAt;
  for (const sender of senders) await sender.close();
  const cpu = sum(after.map(({ cpuUs }) => cpuUs)) - sum(before.map(({ cpuUs }) => cpuUs));
  return {
    processes: servers.length,
    events: deliveries.length,
    perSecond: (deliveries.length / ms) * 1_000,
    cpuUs: cpu / deliveries.length,
    redisCpuUs: ((await redisCpu()) - redisBefore) / deliveries.length,
  };
}
