import type { StoreCounts } from "../inbox/contract/store.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";

/** The counts of unfinished events, from a row for each `state` and, if it is held, each `reason`: `n` of them. */
export function countsIn(
  rows: readonly Readonly<Record<string, unknown>>[],
  oldestDueAt: number | null,
): StoreCounts {
  const counts = { waiting: 0, retrying: 0, running: 0, held: 0 };
  const heldBy: Partial<Record<HeldReason, number>> = {};
  for (const { state, reason, n } of rows) {
    counts[state as keyof typeof counts] += Number(n);
    if (reason !== null) heldBy[reason as HeldReason] = Number(n);
  }
  return { ...counts, heldBy, oldestDueAt };
}
