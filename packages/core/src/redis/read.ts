import type { Versioned } from "../inbox/contract/store.ts";
import { byGroup, type Groups } from "./groups.ts";
import { READ } from "./scripts.ts";
import type { Shards } from "./shards.ts";
import { versionedOf } from "./texts.ts";

/** How many records one script reads. Redis does nothing else while a script runs. */
const MAX_TOGETHER = 100;

/** The records with these keys, in their order. */
export async function readRecords(
  shards: Shards,
  groups: Groups,
  keys: readonly string[],
): Promise<readonly (Versioned | null)[]> {
  const found = new Map<string, Versioned | null>();
  const reads: Promise<void>[] = [];
  for (const [group, own] of byGroup(groups, keys, (key) => shards.of(key))) {
    for (let at = 0; at < own.length; at += MAX_TOGETHER) {
      const together = own.slice(at, at + MAX_TOGETHER);
      const read = group.run(
        READ,
        together.map((key) => shards.of(key).keyOf(key)),
      );
      reads.push(
        read.then((texts) => {
          together.forEach((key, n) => {
            found.set(key, versionedOf(texts[n]));
          });
        }),
      );
    }
  }
  await Promise.all(reads);
  return keys.map((key) => found.get(key) ?? null);
}
