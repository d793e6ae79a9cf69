/** The measurements of `--all` beside the goals. */
import type { SignedDelivery } from "@payhooks/core/testing";
import type { RedisServer } from "../../faults/harness/redis-server.ts";
import { comparePeers } from "../peers/compare.ts";
import type { Mode } from "../protocol.ts";
import type { MoreResults, ThroughputFigures } from "../results.ts";
import type { ServerProcess } from "../server.ts";
import { measureBursts } from "./burst.ts";
import { measureEntries, measureStart } from "./imports.ts";
import { measureLatency } from "./latency.ts";
import { measureScaling } from "./scaling.ts";
import { measureThroughput } from "./throughput.ts";

export interface More {
  readonly server: ServerProcess;
  /** Another process like it. */
  readonly start: () => Promise<ServerProcess>;
  readonly execPath: string;
  readonly redis: RedisServer | null;
  readonly secret: string;
  readonly rsa: readonly SignedDelivery[];
  readonly hmac: readonly SignedDelivery[];
  readonly turnLength: number;
}

export async function measureMore(more: More): Promise<MoreResults> {
  const { server, start, execPath, redis, secret, rsa, hmac, turnLength } = more;
  const ours: readonly Mode[] = redis === null ? ["memory", "sqlite"] : ["memory", "sqlite", "redis"];
  const fresh = async (): Promise<void> => void (await redis?.tell("FLUSHALL"));
  const peers = await comparePeers(start, { deliveries: hmac, turnLength, secret, budgetMs: 3 * 60_000 });
  await fresh();
  const latency = await measureLatency(server, ["inline", ...ours], rsa.slice(0, 6_000));
  await fresh();
  const bursts = await measureBursts(server, ["inline", ...ours], rsa.slice(0, 10_000));
  const throughput = redis === null ? [] : await measureProcesses(more, redis);
  const scaling = await measureScaling(server, redis, rsa.slice(0, 8_000));
  const entries = await measureEntries(execPath);
  return { peers, latency, bursts, throughput, scaling, entries, start: await measureStart(execPath) };
}

async function measureProcesses(
  { server, start, rsa }: More,
  redis: RedisServer,
): Promise<readonly ThroughputFigures[]> {
  const events = rsa.slice(0, 30_000);
  const alone = await measureThroughput([server], redis, events);
  const second = await start();
  const both = await measureThroughput([server, second], redis, events);
  await second.end();
  return [alone, both];
}
