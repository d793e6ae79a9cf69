import type { StoreCounts } from "../inbox/contract/store.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import { findOldestDue } from "./due.ts";
import type { Groups } from "./groups.ts";
import { LIST_NAMES, type ListName } from "./lists.ts";
import { SIZES_SCRIPT } from "./scripts.ts";

const HELD_PREFIX = "held:";

/** Counts the events of all lists. */
export async function countEvents(groups: Groups): Promise<StoreCounts> {
  const [sizes, oldestDueAt] = await Promise.all([
    groups.runAll(SIZES_SCRIPT, (shard) => LIST_NAMES.map((name) => shard.keyOf(name))),
    findOldestDue(groups),
  ]);
  const totals = new Map<string, number>();
  (sizes.flat() as readonly number[]).forEach((size, index) => {
    const name = LIST_NAMES[index % LIST_NAMES.length] ?? "";
    totals.set(name, (totals.get(name) ?? 0) + Number(size));
  });
  const heldBy: Partial<Record<HeldReason, number>> = {};
  let heldCount = 0;
  for (const [name, size] of totals) {
    if (!name.startsWith(HELD_PREFIX) || size === 0) continue;
    heldBy[name.slice(HELD_PREFIX.length) as HeldReason] = size;
    heldCount += size;
  }
  const sizeOf = (name: ListName): number => totals.get(name) ?? 0;
  return {
    waiting: sizeOf("waiting"),
    retrying: sizeOf("retrying"),
    running: sizeOf("running"),
    held: heldCount,
    heldBy,
    oldestDueAt,
  };
}
