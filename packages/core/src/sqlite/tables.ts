import type { KnownRecord, Swap } from "../inbox/contract/store.ts";
import type { EventLabels } from "../inbox/record/index-of.ts";
import { LANES, type Lane } from "../inbox/record/lane.ts";
import type { SqliteDatabase, SqliteStatement } from "./handle.ts";

export interface RecordRow {
  readonly row_id: number;
  readonly key: string;
  readonly version: string;
  readonly text: string;
  readonly expires_at: number | null;
}

const RECORD_COLUMNS = "row_id, key, version, text, expires_at";

/**
 * Selects the records of a lane that are due, the longest waiting first. If a time is further away now than when it was
 * written, a clock that was ahead has written it, and was corrected since. Such a record is due too, so that its time
 * gets corrected. The parameters are: the lane and the time for the first part, for the second part the lane and the
 * latest moment at which a time can have been written, and a limit for both.
 */
const dueSql = (columns: string): string => `
  SELECT ${columns} FROM records WHERE lane = ? AND due_at <= ?
  UNION ALL
  SELECT ${columns} FROM records INDEXED BY records_by_due_from
    WHERE due_at IS NOT NULL AND lane = ? AND due_at - due_in_ms > ?
  ORDER BY due_at LIMIT ?`;

/** Counts unfinished events. The conditions are worded so that SQLite uses the partial index of these events. */
const COUNTS_SQL = `
  SELECT state, NULL AS reason, count(*) AS n FROM events
    WHERE state <> 'finished' AND state <> 'held' GROUP BY state
  UNION ALL
  SELECT state, reason, count(*) AS n FROM events
    WHERE state <> 'finished' AND state = 'held' GROUP BY state, reason`;

/** A clock that was set back by less than this is taken as correct. */
const CLOCK_TOLERANCE_MS = 5_000;

/** The earliest due time in the rows. Drivers say null or undefined where there is no row. */
function earliestTimeIn(rows: readonly unknown[]): number | null {
  const times = (rows as readonly ({ readonly due_at: number } | null | undefined)[]).flatMap(
    (row) => row?.due_at ?? [],
  );
  return times.length === 0 ? null : Math.min(...times);
}

/** Above this number, due records are not counted exactly. */
const MAX_COUNTED_DUE = 10_000;

/** The tables of records and events, with a prepared statement for each operation. */
export class Tables {
  readonly #find: SqliteStatement;
  readonly #insert: SqliteStatement;
  readonly #lastRowId: SqliteStatement;
  readonly #update: SqliteStatement;
  readonly #remove: SqliteStatement;
  readonly #insertEvent: SqliteStatement;
  readonly #updateEvent: SqliteStatement;
  readonly #insertReading: SqliteStatement;
  readonly #removeEvent: SqliteStatement;
  readonly #removeReadings: SqliteStatement;
  readonly #selectDue: SqliteStatement;
  readonly #countDue: SqliteStatement;
  readonly #nextDue: SqliteStatement;
  readonly #oldestDue: SqliteStatement;
  readonly #hide: SqliteStatement;
  readonly #selectExpired: SqliteStatement;
  readonly #countStates: SqliteStatement;
  readonly #selectAfter: SqliteStatement;
  readonly #countLabels: SqliteStatement;

  constructor(database: SqliteDatabase) {
    this.#find = database.prepare(`SELECT ${RECORD_COLUMNS} FROM records WHERE key = ?`);
    this.#insert = database.prepare(
      "INSERT INTO records (key, version, text, lane, due_at, due_in_ms, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    );
    // RETURNING is not used: after an insert that found the disk full, libsql 0.5.29 lost and mixed up rows of other
    // statements.
    this.#lastRowId = database.prepare("SELECT last_insert_rowid() AS row_id");
    this.#update = database.prepare(
      "UPDATE records SET version = ?, text = ?, lane = ?, due_at = ?, due_in_ms = ?, expires_at = ? WHERE row_id = ?",
    );
    this.#remove = database.prepare("DELETE FROM records WHERE row_id = ?");
    this.#insertEvent = database.prepare(
      `INSERT INTO events (record, event_id, state, reason, flow, tenant, id, event, status, reference_id, accepted_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#updateEvent = database.prepare(
      "UPDATE events SET state = ?, reason = ? WHERE record = ? AND event_id = ?",
    );
    this.#insertReading = database.prepare("INSERT INTO readings (text, record) VALUES (?, ?)");
    this.#removeEvent = database.prepare("DELETE FROM events WHERE record = ? AND event_id = ?");
    this.#removeReadings = database.prepare("DELETE FROM readings WHERE record = ?");
    this.#selectDue = database.prepare(dueSql(`${RECORD_COLUMNS}, due_at`));
    this.#countDue = database.prepare(`SELECT count(*) AS n FROM (${dueSql("due_at")})`);
    this.#nextDue = database.prepare(
      `SELECT due_at FROM records INDEXED BY records_by_due
       WHERE lane = ? AND due_at > ? AND due_at - due_in_ms <= ? ORDER BY due_at LIMIT 1`,
    );
    this.#oldestDue = database.prepare(dueSql("due_at"));
    this.#hide = database.prepare("UPDATE records SET due_at = ?, due_in_ms = ? WHERE row_id = ?");
    this.#selectExpired = database.prepare("SELECT row_id FROM records WHERE expires_at <= ? LIMIT ?");
    this.#countStates = database.prepare(COUNTS_SQL);
    this.#selectAfter = database.prepare(
      `SELECT ${RECORD_COLUMNS} FROM records WHERE row_id > ? ORDER BY row_id LIMIT ?`,
    );
    this.#countLabels = database.prepare(
      "SELECT count(*) AS n, total(state <> 'finished') AS open FROM events WHERE record = ?",
    );
  }

  /** The record's row; null if there is none. The row of an expired record may still be found. */
  find(key: string): RecordRow | null {
    // Drivers say null or undefined where there is no row.
    return (this.#find.get(key) as RecordRow | null | undefined) ?? null;
  }

  insert({ key, version, index }: Swap, text: string): void {
    this.#insert.run(key, version, text, index.lane, index.dueAt, index.originalDelayMs, index.expiresAt);
    if (index.events.length === 0) return;
    const { row_id: rowId } = this.#lastRowId.get() as { row_id: number };
    for (const labels of index.events) this.#addEvent(rowId, labels);
  }

  update(rowId: number, { version, index, before }: Swap, text: string): void {
    this.#update.run(version, text, index.lane, index.dueAt, index.originalDelayMs, index.expiresAt, rowId);
    const oldById = new Map(before?.events.map((labels) => [labels.eventId, labels]));
    for (const labels of index.events) {
      const old = oldById.get(labels.eventId);
      if (old === undefined) this.#addEvent(rowId, labels);
      // Its other labels never change.
      else if (old.state !== labels.state || old.reason !== labels.reason) {
        this.#updateEvent.run(labels.state, labels.reason, rowId, labels.eventId);
      }
      oldById.delete(labels.eventId);
    }
    for (const eventId of oldById.keys()) this.#removeEvent.run(rowId, eventId);
    if (oldById.size > 0) this.#removeReadings.run(rowId);
  }

  #addEvent(rowId: number, labels: EventLabels): void {
    const { eventId, state, reason, flow, tenant, id, event, status, referenceId, acceptedAt } = labels;
    this.#insertEvent.run(
      rowId,
      eventId,
      state,
      reason,
      flow,
      tenant,
      id,
      event,
      status,
      referenceId,
      acceptedAt,
    );
    for (const text of labels.foundBy) this.#insertReading.run(text, rowId);
  }

  /** Deletes a record and its events. */
  remove(rowId: number): void {
    this.#remove.run(rowId);
  }

  /** The records of a lane that are due, the longest waiting first. */
  findDue(lane: Lane, now: number, limit: number): readonly RecordRow[] {
    return this.#selectDue.all(lane, now, lane, now + CLOCK_TOLERANCE_MS, limit) as RecordRow[];
  }

  /** How many records of a lane are due. A very high number is not counted exactly. */
  countDue(lane: Lane, now: number): number {
    const row = this.#countDue.get(lane, now, lane, now + CLOCK_TOLERANCE_MS, MAX_COUNTED_DUE);
    return Number((row as { n: number }).n);
  }

  /** When the next record falls due; null when none waits. */
  nextDueAt(now: number): number | null {
    return earliestTimeIn(LANES.map((lane) => this.#nextDue.get(lane, now, now + CLOCK_TOLERANCE_MS)));
  }

  /** When the longest-waiting due record became due; null when none is due. */
  oldestDueAt(now: number): number | null {
    const oldest = earliestTimeIn(
      LANES.map((lane) => this.#oldestDue.get(lane, now, lane, now + CLOCK_TOLERANCE_MS, 1)),
    );
    return oldest === null ? null : Math.min(oldest, now);
  }

  /** True if a record exists, and can be found by the keys with which it was stored. */
  has({ key, version, index }: KnownRecord): boolean {
    const row = this.find(key);
    if (row === null) return false;
    const { n, open } = this.#countLabels.get(row.row_id) as { n: number; open: number };
    const isOpen = index.events.some(({ state }) => state !== "finished");
    return row.version !== version || ((n > 0 || index.events.length === 0) && (open > 0 || !isOpen));
  }

  /** Makes a record due at another time, without a new version. */
  hide(rowId: number, until: number, forMs: number): void {
    this.#hide.run(until, forMs, rowId);
  }

  /** The row ids of records that have expired. */
  findExpired(now: number, limit: number): readonly number[] {
    return (this.#selectExpired.all(now, limit) as { row_id: number }[]).map(({ row_id }) => row_id);
  }

  /** Records in the order of their row ids, including expired ones. */
  listAfter(rowId: number, limit: number): readonly RecordRow[] {
    return this.#selectAfter.all(rowId, limit) as RecordRow[];
  }

  counts(): readonly Readonly<Record<string, unknown>>[] {
    return this.#countStates.all() as Record<string, unknown>[];
  }
}
