import type { HeapEntry, IndexedHeap } from "../collections/indexed-heap.ts";
import type { DueRecord } from "../inbox/contract/store.ts";
import type { RecordIndex } from "../inbox/record/index-of.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";

/** One version of a record with something unfinished or held in it. */
export interface OpenRecord extends DueRecord, HeapEntry {
  readonly record: IdempotencyRecord;
  readonly index: RecordIndex;
  /** Increases with each version that is written. */
  readonly order: number;
  /** The record is not handed out before this time: when it falls due, or when its hiding ends. */
  availableAt: number;
  /** How far away that time was when it was set. */
  availableInMs: number;
  /** The heap in which it waits for that time, or to be taken; null if nothing has to be done. */
  heap: IndexedHeap<OpenRecord> | null;
}
