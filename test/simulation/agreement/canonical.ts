/**
 * Answers of stores in the form in which they are compared. Differences that the contract allows are removed here, and
 * nowhere else:
 *
 * - A store may keep only digests of a finished record's facts. Records are compared as their texts, which contain no more.
 * - Records that became due at the same time come in any order, and so do records whose due time a wrong clock has set.
 * - If each shard of Redis is polled separately, a poll takes the oldest records of some shards. Then all due records are
 *   taken, and compared without their order.
 * - `left` is compared only as some or none.
 * - While some are left, `nextDueAt` may be any time, or null, because the next poll does not depend on it.
 * - Times are compared in whole milliseconds.
 * - Pages of a list may have any length up to the limit: only their total content and its order are compared.
 * - Finished events are on no list of a store that does not list them, and in one that does they may have lost their
 *   `referenceId`: such a list is asked for without one.
 * - A reason without events may be counted as 0, or left out.
 * - A call of `prune` may remove any number of records. It is called until it says that nothing is left.
 * - An expired record may exist again after the clock was set back. Nothing expires in such histories.
 * - Causes of failures are not compared, nor is the `onDue` of a store: it is a hint.
 */

import type {
  DueRecords,
  ListPage,
  StoreCounts,
  SwapResult,
  VersionedRecord,
} from "../../../packages/core/src/inbox/contract/store.ts";
import { encodeRecord, isUnreadable } from "../../../packages/core/src/inbox/record/codec.ts";

/** An answer as plain data. */
export type Answer = unknown;

const wholeMs = (time: number | null): number | null => (time === null ? null : Math.ceil(time));

export function canonicalRecord(found: VersionedRecord | null | undefined): Answer {
  if (found === null || found === undefined) return found;
  const { version, record } = found;
  return { version, text: isUnreadable(record) ? `unreadable: ${record.unreadable}` : encodeRecord(record) };
}

export function canonicalResult(result: SwapResult): Answer {
  return result.kind === "conflict"
    ? { kind: result.kind, current: canonicalRecord(result.current) }
    : { kind: result.kind };
}

/** `since` returns since when a record has been due. Records with the same time may come in any order. */
export function canonicalDue(
  found: Omit<DueRecords, "left"> & { readonly left: number },
  limit: number,
  since: (key: string) => number,
): Readonly<Record<string, Answer>> {
  const isCertain = found.left === 0 || limit === 0;
  const times = found.records.map(({ key }) => since(key));
  return {
    areInOrder: times.every((time, at) => time >= (times[at - 1] ?? 0)),
    records: found.records
      .toSorted((a, b) => inOrder(since(a.key), since(b.key)) || inOrder(a.key, b.key))
      .map((due) => ({ key: due.key, due: canonicalRecord(due) })),
    left: found.left > 0,
    nextDueAt: isCertain ? wholeMs(found.nextDueAt) : "any",
  };
}

export function canonicalCounts({ heldBy, oldestDueAt, ...counts }: StoreCounts): Answer {
  const reasons = Object.entries(heldBy).filter(([, count]) => count !== 0);
  return {
    ...counts,
    oldestDueAt: wholeMs(oldestDueAt),
    heldBy: reasons.toSorted(([a], [b]) => (a < b ? -1 : 1)),
  };
}

export function canonicalPages(pages: readonly ListPage[], limit: number): Answer {
  const events = pages.flatMap((page) => page.events);
  return {
    areWithinLimit: pages.every((page) => page.events.length <= limit),
    events: events.map(({ eventId, acceptedAt, versioned }) => ({
      eventId,
      acceptedAt,
      versioned: canonicalRecord(versioned),
    })),
  };
}

function inOrder<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
