import type { ScanPage, VersionedRecord } from "../inbox/contract/store.ts";
import type { Group } from "./groups.ts";
import { SCAN_SCRIPT } from "./scripts.ts";
import type { Shards } from "./shards.ts";

/** Characters that have a meaning in a pattern of Redis. */
const SPECIAL_CHARACTER_PATTERN = /[*?[\]\\^-]/g;
/** Matches the name of a record. Nothing else in a shard has a name that ends like this. */
const RECORD_NAME_PATTERN = /\}:([0-9a-f]{32})$/;

/**
 * A page of all records. Redis has no list of finished records, so the names of all keys are searched, node by node. A page
 * takes long if other programs have many keys in the same Redis.
 */
export async function scanRecords(
  shards: Shards,
  nodes: readonly Group[],
  cursor: string | null,
  limit: number,
  readRecords: (keys: readonly string[]) => Promise<readonly (VersionedRecord | null)[]>,
): Promise<ScanPage> {
  const [node = 0, position = "0"] = cursor === null ? [] : cursor.split(" ");
  const group = nodes[Number(node)];
  const [shard = shards.all[0]] = group?.shards ?? [];
  if (group === undefined) return { records: [], next: null };
  const pattern = `${shards.prefix.replace(SPECIAL_CHARACTER_PATTERN, "\\$&")}:{*}:*`;
  const [next, names] = await group.run(SCAN_SCRIPT, [shard.due.usual], [position, pattern, limit]);
  const keys = (names as readonly string[]).flatMap((name) => RECORD_NAME_PATTERN.exec(name)?.[1] ?? []);
  const storedRecords = await readRecords(keys);
  const records = keys.flatMap((key, index) => {
    const versioned = storedRecords[index] ?? null;
    return versioned === null ? [] : [{ key, ...versioned }];
  });
  if (String(next) !== "0") return { records, next: `${node} ${String(next)}` };
  const isLast = Number(node) + 1 >= nodes.length;
  return { records, next: isLast ? null : `${Number(node) + 1} 0` };
}
