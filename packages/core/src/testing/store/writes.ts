/** Writes to a store under test, and checks of its answers. */
import assert from "node:assert/strict";
import type {
  DueRecords,
  RecordStore,
  StoreCounts,
  Swap,
  SwapResult,
  VersionedRecord,
} from "../../inbox/contract/store.ts";
import { encodeRecord, isUnreadable } from "../../inbox/record/codec.ts";
import { indexOf } from "../../inbox/record/index-of.ts";
import { ZERO_PER_LANE } from "../../inbox/record/lane.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import { newToken } from "./records.ts";

/** A record that was written, as its writer knows it. */
export interface PutRecord {
  readonly key: string;
  readonly version: string;
  readonly record: IdempotencyRecord;
}

/** The write that replaces the last written record by `record`. */
export function swapOf(
  store: RecordStore,
  key: string,
  before: PutRecord | null,
  record: IdempotencyRecord,
  changes: Partial<Swap> = {},
): Swap {
  return {
    key,
    expected: before?.version ?? null,
    version: newToken(),
    record,
    index: indexOf(key, record),
    before: before === null ? null : indexOf(key, before.record),
    at: store.now(key),
    shouldAnnounce: false,
    ...changes,
  };
}

/** Makes the writes in one call. The answers are in the order of the given writes. */
export async function swapAll(store: RecordStore, swaps: readonly Swap[]): Promise<readonly SwapResult[]> {
  const sorted = swaps.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  const results = await store.swap(sorted);
  assert.equal(results.length, sorted.length);
  return swaps.map((swap) => {
    const result = results[sorted.indexOf(swap)];
    if (result === undefined) assert.fail("swap did not answer every write.");
    return result;
  });
}

/** Makes one write, which must succeed. */
export async function put(
  store: RecordStore,
  key: string,
  before: PutRecord | null,
  record: IdempotencyRecord,
  changes: Partial<Swap> = {},
): Promise<PutRecord> {
  const swap = swapOf(store, key, before, record, changes);
  assert.deepEqual(await store.swap([swap]), [{ kind: "written" }]);
  return { key, version: swap.version, record };
}

/** Writes new records in one call. */
export async function putAll(
  store: RecordStore,
  records: ReadonlyMap<string, IdempotencyRecord>,
): Promise<ReadonlyMap<string, PutRecord>> {
  const swaps = [...records].map(([key, record]) => swapOf(store, key, null, record));
  for (const result of await swapAll(store, swaps)) assert.deepEqual(result, { kind: "written" });
  return new Map(swaps.map(({ key, version, record }) => [key, { key, version, record }]));
}

/** Reads one record. */
export async function readOne(store: RecordStore, key: string): Promise<VersionedRecord | null> {
  const [versioned] = await store.read([key]);
  if (versioned === undefined) assert.fail("read did not answer the key that it was asked for.");
  return versioned;
}

/**
 * Polls with the same limit for both lanes. `left` is the sum of both lanes. `nextDueAt` comes from a second poll, which
 * takes nothing and so is exact.
 */
export async function takeOfBothLanes(
  store: Pick<RecordStore, "takeDue">,
  limit: number,
  hideMs: number,
): Promise<Omit<DueRecords, "left"> & { readonly left: number }> {
  const { left, records } = await store.takeDue({ usual: limit, patient: limit }, hideMs);
  const { nextDueAt } = await store.takeDue(ZERO_PER_LANE, 0);
  return { records, nextDueAt, left: left.usual + left.patient };
}

/** Fails unless the store's record is the written one. The store may keep facts of finished records as digests. */
export function expectSame(actual: VersionedRecord | null | undefined, expected: PutRecord): void {
  assert.deepEqual(asText(actual), { version: expected.version, text: encodeRecord(expected.record) });
}

function asText(versioned: VersionedRecord | null | undefined): unknown {
  if (versioned === null || versioned === undefined) return versioned;
  const { version, record } = versioned;
  return { version, text: isUnreadable(record) ? record.unreadable : encodeRecord(record) };
}

/** The counts, without reasons for which no event is held. */
interface CountsByReason extends Omit<StoreCounts, "heldBy"> {
  readonly heldBy: readonly (readonly [string, number])[];
}

export async function countsByReason(store: RecordStore): Promise<CountsByReason> {
  const { heldBy, ...counts } = await store.counts();
  const reasons = Object.entries(heldBy).filter(([, count]) => count !== 0);
  return { ...counts, heldBy: reasons.toSorted(([a], [b]) => (a < b ? -1 : 1)) };
}

/** Fails unless the store's counts are as expected. Counts that are not named may have any value. */
export async function expectCounts(store: RecordStore, expected: Partial<CountsByReason>): Promise<void> {
  const counts = await countsByReason(store);
  assert.deepEqual(counts, { ...counts, ...expected });
}
