import type { RecordStore, Swap, SwapResult } from "../../packages/core/src/inbox/contract/store.ts";
import { acceptedRecord, keyOf } from "../../packages/core/src/testing/store/records.ts";
import { swapOf } from "../../packages/core/src/testing/store/writes.ts";

/** Writes of new records, each with an event that waits. */
export function newRecordWrites(store: RecordStore, count: number): readonly Swap[] {
  return Array.from({ length: count }, (_, n) => {
    const key = keyOf(1_000 + n);
    return swapOf(store, key, null, acceptedRecord(key, store.now(key)));
  });
}

/** Each kind of result once. */
export function kindsOf(results: readonly SwapResult[]): readonly string[] {
  return [...new Set(results.map(({ kind }) => kind))];
}
