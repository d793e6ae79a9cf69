import type { SetupWarning } from "../notices/setup-warnings.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { isReply } from "./failure.ts";
import type { Group } from "./groups.ts";
import { REPORT_SCRIPT } from "./scripts.ts";

const MIN_VERSION = [6, 2] as const;

/**
 * Checks that servers keep their data. Returns what should be warned about.
 *
 * @param groups one of each node
 * @throws PayhooksError `ERR_REDIS_UNSUITABLE` for a server that may evict records, or is too old.
 */
export async function checkServers(groups: readonly Group[]): Promise<readonly SetupWarning[]> {
  const warnings = await Promise.all(groups.map(checkServer));
  return warnings.flat();
}

async function checkServer(group: Group): Promise<readonly SetupWarning[]> {
  const keys = group.shards.slice(0, 1).map((shard) => shard.keyOf("report"));
  let report: unknown;
  try {
    [report] = await group.run(REPORT_SCRIPT, keys);
  } catch (error) {
    if (!isReply(error)) throw error;
    return [
      {
        what: "Redis does not say how it is set up (INFO).",
        fix: "Make sure that it evicts nothing and keeps an append-only file.",
      },
    ];
  }
  const info = parseInfo(String(report));
  const version = info.get("redis_version") ?? "";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < MIN_VERSION[1])) {
    throw new PayhooksError(
      "ERR_REDIS_UNSUITABLE",
      `Redis ${version || "of an unknown version"} is too old.`,
      { fix: `Use ${MIN_VERSION.join(".")} or newer.` },
    );
  }
  const policy = info.get("maxmemory_policy") ?? "noeviction";
  if (policy !== "noeviction") {
    throw new PayhooksError(
      "ERR_REDIS_UNSUITABLE",
      `Redis evicts keys when its memory is full (maxmemory-policy ${policy}).`,
      {
        fix: "Set maxmemory-policy to noeviction. If a record were evicted, its event could run twice or be lost.",
      },
    );
  }
  if (info.get("aof_enabled") !== "0") return [];
  return [
    {
      what: "Redis keeps no append-only file: acknowledged events are lost when it restarts.",
      fix: "Set appendonly yes.",
    },
  ];
}

function parseInfo(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0) values.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return values;
}
