/** Bytes of a finished record: what a merchant pays for every event of the last eight days. */
import type { SignedDelivery } from "@payhooks/core/testing";
import type { RedisServer } from "../faults/harness/redis-server.ts";
import { senderTo } from "./load.ts";
import type { ServerProcess } from "./server.ts";

/** The first ones also pay for tables that the next ones share. */
const FIRST = 2_000;
/** Fewer tell more of the engine's tables, which double now and then, than of the records in them. */
const ENOUGH = 10_000;

export async function recordBytes(
  server: ServerProcess,
  redis: RedisServer | null,
  deliveries: readonly SignedDelivery[],
): Promise<Partial<Record<"memory" | "sqlite" | "redis", number>>> {
  const counted =
    deliveries.length < ENOUGH
      ? {}
      : {
          memory: await growth(server, "memory", deliveries),
          sqlite: await growth(server, "sqlite", deliveries),
        };
  if (redis === null) return counted;
  await redis.tell("FLUSHALL");
  await growth(server, "redis", deliveries.slice(0, 2 * FIRST));
  return { ...counted, redis: await bytesOfKeys(redis) };
}

/** How much more is kept after each further delivery, which is handled and finished by then. */
async function growth(
  server: ServerProcess,
  mode: "memory" | "sqlite" | "redis",
  deliveries: readonly SignedDelivery[],
): Promise<number> {
  const target = await server.tell({ do: "open", variant: { framework: "express", scheme: "rsa", mode } });
  const sender = senderTo(target, 16);
  await sender.send(deliveries.slice(0, FIRST));
  const before = await server.tell({ do: "read", handled: FIRST, kept: true });
  await sender.send(deliveries.slice(FIRST));
  const after = await server.tell({ do: "read", handled: deliveries.length, kept: true });
  await sender.close();
  return ((after.keptBytes ?? Number.NaN) - (before.keptBytes ?? Number.NaN)) / (deliveries.length - FIRST);
}

/** The memory of a record with its key, as Redis itself tells it. */
async function bytesOfKeys(redis: RedisServer): Promise<number> {
  const all = (await redis.tell("KEYS", "payhooks:*")) as readonly string[];
  const keys = all.filter((key) => /:[0-9a-f]{32}$/.test(key));
  if (keys.length < FIRST) throw new Error(`${keys.length} records in Redis`);
  let bytes = 0;
  for (const key of keys) bytes += Number(await redis.tell("MEMORY", "USAGE", key));
  return bytes / keys.length;
}
