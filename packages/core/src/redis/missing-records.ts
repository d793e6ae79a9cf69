import type { KnownRecord } from "../inbox/contract/store.ts";
import { type Groups, partitionByGroup } from "./groups.ts";
import { listNameOf, memberOf } from "./lists.ts";
import { COUNT_MISSING_SCRIPT } from "./scripts.ts";
import type { Shard, Shards } from "./shards.ts";
import { versionPrefixOf } from "./stored-text.ts";

/**
 * True if one of these records is gone, or is no longer in the sets by which it is found. A node that does not answer is left
 * out.
 */
export async function isAnyRecordMissing(
  shards: Shards,
  groups: Groups,
  knownRecords: readonly KnownRecord[],
): Promise<boolean> {
  const requests = [...partitionByGroup(groups, knownRecords, ({ key }) => shards.shardOf(key))].map(
    async ([group, records]) => {
      const checks = records.map((record) => entriesOf(shards.shardOf(record.key), record));
      const [missing] = await group.run(
        COUNT_MISSING_SCRIPT,
        checks.flatMap(({ keys }) => keys),
        checks.flatMap(({ args }) => args),
      );
      return Number(missing) > 0;
    },
  );
  const answers = await Promise.allSettled(requests);
  return answers.some((answer) => answer.status === "fulfilled" && answer.value);
}

function entriesOf(
  shard: Shard,
  { key, version, index }: KnownRecord,
): { readonly keys: readonly string[]; readonly args: readonly (string | number)[] } {
  const entries = index.events.flatMap((event) => {
    const list = listNameOf(event);
    return list === null ? [] : [{ set: shard.keyOf(list), member: memberOf(event) }];
  });
  if (index.dueAt !== null) entries.push({ set: shard.due[index.lane], member: key });
  return {
    keys: [shard.keyOf(key), ...entries.map(({ set }) => set)],
    args: [versionPrefixOf(version), entries.length, ...entries.map(({ member }) => member)],
  };
}
