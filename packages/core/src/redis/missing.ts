import type { KnownRecord } from "../inbox/contract/store.ts";
import { byGroup, type Groups } from "./groups.ts";
import { listNameOf, memberOf } from "./lists.ts";
import { MISSING } from "./scripts.ts";
import type { Shard, Shards } from "./shards.ts";
import { beginningOf } from "./texts.ts";

/**
 * True if one of these records is gone, or is no longer in the sets by which it is found. A node that does not answer is left
 * out.
 */
export async function isAnyMissing(
  shards: Shards,
  groups: Groups,
  known: readonly KnownRecord[],
): Promise<boolean> {
  const requests = [...byGroup(groups, known, ({ key }) => shards.of(key))].map(async ([group, own]) => {
    const checks = own.map((one) => entriesOf(shards.of(one.key), one));
    const [missing] = await group.run(
      MISSING,
      checks.flatMap(({ keys }) => keys),
      checks.flatMap(({ args }) => args),
    );
    return Number(missing) > 0;
  });
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
    args: [beginningOf(version), entries.length, ...entries.map(({ member }) => member)],
  };
}
