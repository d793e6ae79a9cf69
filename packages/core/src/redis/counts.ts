import type { Counts } from "../inbox/contract/store.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import { oldestDue } from "./due.ts";
import type { Groups } from "./groups.ts";
import { LISTS, type ListName } from "./lists.ts";
import { SIZES } from "./scripts.ts";

const HELD = "held:";

/** Counts the events of all lists. */
export async function countEvents(groups: Groups): Promise<Counts> {
  const [sizes, oldestDueAt] = await Promise.all([
    groups.runAll(SIZES, (shard) => LISTS.map((name) => shard.keyOf(name))),
    oldestDue(groups),
  ]);
  const totals = new Map<string, number>();
  (sizes.flat() as readonly number[]).forEach((size, at) => {
    const name = LISTS[at % LISTS.length] ?? "";
    totals.set(name, (totals.get(name) ?? 0) + Number(size));
  });
  const heldBy: Partial<Record<HeldReason, number>> = {};
  let held = 0;
  for (const [name, size] of totals) {
    if (!name.startsWith(HELD) || size === 0) continue;
    heldBy[name.slice(HELD.length) as HeldReason] = size;
    held += size;
  }
  const sizeOf = (name: ListName): number => totals.get(name) ?? 0;
  return {
    waiting: sizeOf("waiting"),
    retrying: sizeOf("retrying"),
    running: sizeOf("running"),
    held,
    heldBy,
    oldestDueAt,
  };
}
