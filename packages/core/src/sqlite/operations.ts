/**
 * The operations of a store, made of the tables' statements. They are synchronous, and a store that keeps its records
 * in these tables decides what is one transaction.
 */

import type {
  DueRecords,
  ScanPage,
  StoreCounts,
  Swap,
  SwapResult,
  VersionedRecord,
} from "../inbox/contract/store.ts";
import { decodeRecord, encodeRecord } from "../inbox/record/codec.ts";
import { LANES, type Lanes } from "../inbox/record/lane.ts";
import { countsIn } from "../sql/counts.ts";
import type { RecordRow, Tables } from "./tables.ts";

/** A write that was computed longer ago than this has to be computed again. */
const MAX_WRITE_AGE_MS = 5_000;
/** How many expired records one step deletes, so that no delivery waits for a long clean-up. */
const PRUNE_BATCH_SIZE = 100;

export function readAll(
  tables: Tables,
  keys: readonly string[],
  now: number,
): readonly (VersionedRecord | null)[] {
  return keys.map((key) => versionedRecordOf(dropExpired(tables.find(key), now)));
}

/** Writes an item if the record still has the version that it expects. Throws what SQLite throws. */
export function swapOne(tables: Tables, item: Swap, now: number): SwapResult {
  const row = tables.find(item.key);
  const current = dropExpired(row, now);
  const isTimely = item.at <= now && item.at >= now - MAX_WRITE_AGE_MS;
  if (!isTimely || (current?.version ?? null) !== item.expected) {
    return { kind: "conflict", current: versionedRecordOf(current) };
  }
  const text = encodeRecord(item.record);
  if (current !== null) tables.update(current.row_id, item, text);
  else {
    if (row !== null) tables.remove(row.row_id);
    tables.insert(item, text);
  }
  return { kind: "written" };
}

/** True if a lane from which records are wanted has one that is due. */
export function isAnyDue(tables: Tables, limit: Lanes, now: number): boolean {
  return LANES.some((lane) => limit[lane] > 0 && tables.findDue(lane, now, 1).length > 0);
}

/** Hides the records that are due, and returns them. */
export function hideDue(tables: Tables, limit: Lanes, hideMs: number, now: number): readonly RecordRow[] {
  const rows = LANES.flatMap((lane) => (limit[lane] > 0 ? tables.findDue(lane, now, limit[lane]) : []));
  for (const { row_id } of rows) tables.hide(row_id, now + hideMs, hideMs);
  return rows;
}

/** These records, and what else is due. */
export function dueRecordsOf(tables: Tables, takenRows: readonly RecordRow[], now: number): DueRecords {
  return {
    records: takenRows.map((row) => ({ key: row.key, ...decodeRow(row) })),
    left: { usual: tables.countDue("usual", now), patient: tables.countDue("patient", now) },
    nextDueAt: tables.nextDueAt(now),
  };
}

export function scanFrom(tables: Tables, cursor: string | null, limit: number, now: number): ScanPage {
  const rows = tables.listAfter(Number(cursor ?? 0), limit);
  const records = rows
    .filter((row) => dropExpired(row, now) !== null)
    .map((row) => ({ key: row.key, ...decodeRow(row) }));
  return { records, next: rows.length < limit ? null : String(rows.at(-1)?.row_id) };
}

export function countsOf(tables: Tables, now: number): StoreCounts {
  return countsIn(tables.counts(), tables.oldestDueAt(now));
}

/** True if there is anything to prune. */
export function isAnyExpired(tables: Tables, before: number): boolean {
  return tables.findExpired(before, 1).length > 0;
}

/** Deletes some records that have expired. True if there may be more. */
export function pruneSome(tables: Tables, before: number): boolean {
  const rowIds = tables.findExpired(before, PRUNE_BATCH_SIZE);
  for (const rowId of rowIds) tables.remove(rowId);
  return rowIds.length === PRUNE_BATCH_SIZE;
}

function dropExpired(row: RecordRow | null, now: number): RecordRow | null {
  return row !== null && row.expires_at !== null && row.expires_at <= now ? null : row;
}

function versionedRecordOf(row: RecordRow | null): VersionedRecord | null {
  return row === null ? null : decodeRow(row);
}

function decodeRow({ version, text }: RecordRow): VersionedRecord {
  return { version, record: decodeRecord(text) };
}
