import type { VersionedRecord } from "../inbox/contract/store.ts";
import { type Groups, partitionByGroup } from "./groups.ts";
import { READ_SCRIPT } from "./scripts.ts";
import type { Shards } from "./shards.ts";
import { versionedRecordOf } from "./stored-text.ts";

/** How many records one script reads. Redis does nothing else while a script runs. */
const MAX_BATCH_KEYS = 100;

/** The records with these keys, in their order. */
export async function readRecords(
  shards: Shards,
  groups: Groups,
  keys: readonly string[],
): Promise<readonly (VersionedRecord | null)[]> {
  const recordsByKey = new Map<string, VersionedRecord | null>();
  const reads: Promise<void>[] = [];
  for (const [group, groupKeys] of partitionByGroup(groups, keys, (key) => shards.shardOf(key))) {
    for (let start = 0; start < groupKeys.length; start += MAX_BATCH_KEYS) {
      const batch = groupKeys.slice(start, start + MAX_BATCH_KEYS);
      const whenRead = group.run(
        READ_SCRIPT,
        batch.map((key) => shards.shardOf(key).keyOf(key)),
      );
      reads.push(
        whenRead.then((texts) => {
          batch.forEach((key, n) => {
            recordsByKey.set(key, versionedRecordOf(texts[n]));
          });
        }),
      );
    }
  }
  await Promise.all(reads);
  return keys.map((key) => recordsByKey.get(key) ?? null);
}
