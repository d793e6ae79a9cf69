import type { RecordIndex } from "../inbox/record/index-of.ts";
import type { IdempotencyRecord } from "../inbox/record/record.ts";
import type { DueRecord } from "../inbox/store.ts";
import type { EarliestFirst, Placed } from "./earliest-first.ts";

/** One version of a record with something unfinished or held in it. */
export interface OpenRecord extends DueRecord, Placed {
  readonly record: IdempotencyRecord;
  readonly index: RecordIndex;
  /** Grows from one version that is written to the next. */
  readonly order: number;
  /** Nobody is given it before this time: when it is due, or when its hiding ends. */
  lookAt: number;
  /** How far away that was when it was set. */
  lookInMs: number;
  /** Where it waits for that time, or to be taken; null: nobody has to look at it. */
  line: EarliestFirst<OpenRecord> | null;
}
