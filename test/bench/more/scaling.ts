/** What a delivery costs while there are many finished records. */
import { createHash } from "node:crypto";
import type { SignedDelivery } from "@payhooks/core/testing";
import type { RedisServer } from "../../faults/harness/redis-server.ts";
import { senderTo } from "../load.ts";
import type { ScalingFigures } from "../results.ts";
import type { ServerProcess } from "../server.ts";

const LEVELS = [1_000, 10_000, 100_000, 1_000_000] as const;

export async function measureScaling(
  server: ServerProcess,
  redis: RedisServer | null,
  deliveries: readonly SignedDelivery[],
): Promise<readonly ScalingFigures[]> {
  const figures: ScalingFigures[] = [];
  // The first turn is not measured: the engine compiles what is hot.
  const turn = Math.floor(deliveries.length / (LEVELS.length + 1));
  for (const mode of ["memory", "sqlite", "redis"] as const) {
    if (mode === "redis" && redis === null) continue;
    await redis?.tell("FLUSHALL");
    // Nothing is to be evicted.
    const variant = { framework: "express", scheme: "rsa", mode, maxRecords: 2_000_000 } as const;
    const sender = senderTo(await server.tell({ do: "open", variant }), 64);
    await sender.send(deliveries.slice(0, turn));
    await server.tell({ do: "read", handled: turn });
    let there = 0;
    for (const [level, records] of LEVELS.entries()) {
      if (mode === "redis" && redis !== null) await copyRecords(server, redis, there, records);
      else await server.tell({ do: "fill", records: records - there });
      there = records;
      const before = await server.tell({ do: "read", handled: 0 });
      await sender.send(deliveries.slice((level + 1) * turn, (level + 2) * turn));
      const after = await server.tell({ do: "read", handled: before.handled + turn });
      figures.push({ mode, records, cpuUs: (after.cpuUs - before.cpuUs) / turn });
    }
    await sender.close();
  }
  return figures;
}

/** Redis is filled with copies of one finished record, under keys of the same form: the real way takes an hour. */
async function copyRecords(
  server: ServerProcess,
  redis: RedisServer,
  from: number,
  to: number,
): Promise<void> {
  if (from === 0) await server.tell({ do: "fill", records: 1 });
  const keys = (await redis.tell("KEYS", "payhooks:*")) as readonly string[];
  const one = keys.find((key) => /^payhooks:[0-9a-f]{32}$/.test(key));
  if (one === undefined) throw new Error("there is no record to copy");
  const value = String(await redis.tell("GET", one));
  const client = redis.client();
  for (let n = from; n < to; n += 1_000) {
    const batch = client.pipeline();
    for (let i = n; i < Math.min(to, n + 1_000); i++) {
      batch.set(`payhooks:${createHash("md5").update(String(i)).digest("hex")}`, value, "EX", 86_400);
    }
    await batch.exec();
  }
  client.disconnect();
}
