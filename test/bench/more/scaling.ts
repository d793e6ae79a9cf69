/** The cost of a delivery while there are many finished records. */
import type { RecordStore } from "@payhooks/core/inbox";
import { redisStore } from "@payhooks/core/redis";
import { sqliteStore } from "@payhooks/core/sqlite";
import type { SignedDelivery } from "@payhooks/core/testing";
import type { RedisServer } from "../../faults/harness/redis-server.ts";
import { fillStore } from "../finished-records.ts";
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
    const { file, ...target } = await server.tell({ do: "open", variant });
    const sender = senderTo(target, 64);
    await sender.send(deliveries.slice(0, turn));
    await server.tell({ do: "read", handled: turn });
    let there = 0;
    for (const [level, records] of LEVELS.entries()) {
      const range = { from: there, to: records };
      if (mode === "memory") await server.tell({ do: "fill", records: records - there });
      else await fill(file === null ? redisStore(redis?.url) : sqliteStore(file), range);
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

async function fill(
  store: RecordStore,
  range: { readonly from: number; readonly to: number },
): Promise<void> {
  await store.open();
  await fillStore(store, range);
  await store.close();
}
