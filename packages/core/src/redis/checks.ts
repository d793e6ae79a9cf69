import type { Cluster, Redis } from "ioredis";
import { PayhooksError } from "../errors.ts";
import { isCluster } from "./connections.ts";

const MIN_VERSION = [6, 2] as const;

/**
 * Checks that a server keeps what it is given. Returns what should be warned about.
 *
 * @throws PayhooksError `ERR_REDIS_UNSUITABLE` for a server that may evict records, or is too old.
 */
export async function checkServer(redis: Redis | Cluster): Promise<readonly string[]> {
  const nodes: readonly Redis[] = isCluster(redis) ? redis.nodes("master") : [redis];
  const warnings = new Set<string>();
  for (const node of nodes) {
    const info = parseInfo(await node.info());
    const version = info.get("redis_version") ?? "";
    const [major = 0, minor = 0] = version.split(".").map(Number);
    if (major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < MIN_VERSION[1])) {
      throw new PayhooksError(
        "ERR_REDIS_UNSUITABLE",
        `Redis ${version || "of an unknown version"} is too old.`,
        {
          fix: `Use ${MIN_VERSION.join(".")} or newer.`,
        },
      );
    }
    const policy = info.get("maxmemory_policy") ?? "noeviction";
    if (policy !== "noeviction") {
      throw new PayhooksError(
        "ERR_REDIS_UNSUITABLE",
        `Redis evicts keys when its memory is full (maxmemory-policy ${policy}).`,
        {
          fix: "Set maxmemory-policy to noeviction: an evicted record would let an event run twice, an evicted job would lose it.",
        },
      );
    }
    if (info.get("aof_enabled") === "0") {
      warnings.add(
        "Redis keeps no append-only file: acknowledged events are lost when it restarts. Set appendonly yes.",
      );
    }
  }
  return [...warnings];
}

function parseInfo(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0) values.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return values;
}
