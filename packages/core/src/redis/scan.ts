import type { Scanned, Versioned } from "../inbox/contract/store.ts";
import type { Group } from "./groups.ts";
import { SCAN } from "./scripts.ts";
import type { Shards } from "./shards.ts";

/** Characters that have a meaning in a pattern of Redis. */
const SPECIAL = /[*?[\]\\^-]/g;
/** Matches the name of a record. Nothing else in a shard has a name that ends like this. */
const RECORD_NAME = /\}:([0-9a-f]{32})$/;

/**
 * A page of all records. Redis has no list of finished records, so the names of all keys are searched, node by node. A page
 * takes long if other programs have many keys in the same Redis.
 */
export async function scanRecords(
  shards: Shards,
  nodes: readonly Group[],
  cursor: string | null,
  limit: number,
  read: (keys: readonly string[]) => Promise<readonly (Versioned | null)[]>,
): Promise<Scanned> {
  const [node = 0, position = "0"] = cursor === null ? [] : cursor.split(" ");
  const group = nodes[Number(node)];
  const [shard = shards.all[0]] = group?.shards ?? [];
  if (group === undefined) return { records: [], next: null };
  const pattern = `${shards.prefix.replace(SPECIAL, "\\$&")}:{*}:*`;
  const [next, names] = await group.run(SCAN, [shard.due.usual], [position, pattern, limit]);
  const keys = (names as readonly string[]).flatMap((name) => RECORD_NAME.exec(name)?.[1] ?? []);
  const found = await read(keys);
  const records = keys.flatMap((key, at) => {
    const versioned = found[at] ?? null;
    return versioned === null ? [] : [{ key, ...versioned }];
  });
  if (String(next) !== "0") return { records, next: `${node} ${String(next)}` };
  const isLast = Number(node) + 1 >= nodes.length;
  return { records, next: isLast ? null : `${Number(node) + 1} 0` };
}
