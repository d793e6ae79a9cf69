import type { EventLabels } from "../inbox/record/index-of.ts";
import { MAX_WRITE_AGE_MS } from "../sql/due-bound.ts";
import type { BoundStatement, Statement, Value } from "./client.ts";
import { type EventChanges, eventChanges, type RecordWrite, type StateChange } from "./event-changes.ts";
import { quoteSchema } from "./schema.ts";
import { NOW_SQL, toWholeMs, UNEXPIRED_SQL } from "./statements.ts";

/** A column of bound rows: its name, its type, and how to get its values. */
type Column<T> = readonly [name: string, type: "text" | "bigint" | "float8", get: (row: T) => Value];

/** Something about an event of a record. */
interface EventRow {
  readonly key: string;
  readonly labels: EventLabels;
}

const KEY_COLUMN: Column<{ readonly key: string }> = ["key", "text", ({ key }) => key];
const EVENT_ID_COLUMN: Column<EventRow> = ["event_id", "text", ({ labels }) => labels.eventId];
const ACCEPTED_AT_COLUMN: Column<EventRow> = ["accepted_at", "float8", ({ labels }) => labels.acceptedAt];

/**
 * Restricts a table to the rows of the records that were written. Without it, a server may believe that the table is empty,
 * because it was empty when statistics were last made. Then it reads a whole index, with all entries that a snapshot keeps from
 * clean-up.
 */
const writtenRecordCondition = (table: string): string =>
  `${table}.record = ANY (ARRAY(SELECT row_id FROM written))`;

/**
 * Writes records together with their labels, each independently of the others. Returns the keys of the records that were
 * written, and the others as they were when the statement began.
 *
 * A record is written if it still has the expected version, or if there is none and none was expected. If another session is
 * writing one of them at the same time, the statement waits for that write. Rows are locked in the order of their keys, so two
 * such statements cannot deadlock. A statement has only the steps that its writes need: so it is planned and run faster.
 */
export function swapMany(schema: string, writes: readonly RecordWrite[]): BoundStatement {
  const tables = quoteSchema(schema);
  const values: (readonly Value[])[] = [];
  const bind = <T>(rows: readonly T[], columns: readonly Column<T>[]): string => {
    const parameters = columns.map(([, type, get]) => `$${values.push(rows.map(get))}::${type}[]`);
    return `unnest(${parameters.join(", ")}) AS given (${columns.map(([name]) => name).join(", ")})`;
  };
  const events = writes.map(({ item }) => [item.key, eventChanges(item)] as const);
  const rowsOf = <T>(
    pick: (changes: EventChanges) => readonly T[],
  ): readonly (T & { readonly key: string })[] =>
    events.flatMap(([key, changes]) => pick(changes).map((row) => ({ ...row, key })));
  const addedEvents = rowsOf((changes) => changes.addedEvents.map((labels) => ({ labels })));
  const removedEvents = rowsOf((changes) => changes.removedEvents.map((labels) => ({ labels })));
  const stateChanges = rowsOf((changes) => changes.stateChanges);
  const readings = addedEvents.flatMap(({ key, labels }) => labels.foundBy.map((text) => ({ key, text })));
  const stepFlags = {
    inserts: writes.some(({ item }) => item.expected === null),
    updates: writes.some(({ item }) => item.expected !== null),
    labels: addedEvents.length > 0,
    readings: readings.length > 0,
    opened: stateChanges.some(({ change }) => change === "opened"),
    moved: stateChanges.some(({ change }) => change === "moved"),
    closed: stateChanges.some(({ change }) => change === "closed"),
    gone: removedEvents.length > 0,
  };

  const steps = [
    `input AS MATERIALIZED (
      SELECT key, expected, version, text, lane, is_leased = 1 AND coalesce(due_at > ${NOW_SQL}, FALSE) AS taken, expires_at,
        CASE WHEN due_at IS NOT NULL THEN greatest(due_at, ${NOW_SQL} - ${MAX_WRITE_AGE_MS}) END AS due_at
      FROM ${bind(writes, [
        ["key", "text", ({ item }) => item.key],
        ["expected", "text", ({ item }) => item.expected],
        ["version", "text", ({ item }) => item.version],
        ["text", "text", ({ text }) => text],
        ["at", "bigint", ({ item }) => Math.ceil(item.at)],
        ["due_at", "bigint", ({ item }) => toWholeMs(item.index.dueAt)],
        ["expires_at", "bigint", ({ item }) => toWholeMs(item.index.expiresAt)],
        ["lane", "text", ({ item }) => item.index.lane],
        ["is_leased", "bigint", ({ item }) => (item.index.isLeased ? 1 : 0)],
      ])}
      WHERE at <= ${NOW_SQL} AND at >= ${NOW_SQL} - ${MAX_WRITE_AGE_MS}
    )`,
  ];
  const writtenRows: string[] = [];
  if (stepFlags.updates) {
    steps.push(
      `known AS MATERIALIZED (
        SELECT r.row_id, i.* FROM input i JOIN ${tables}.records r ON r.key = i.key AND r.version = i.expected
        WHERE r.expires_at IS NULL OR r.expires_at > ${NOW_SQL}
        ORDER BY r.key FOR UPDATE OF r
      )`,
      `updated AS (
        UPDATE ${tables}.records r SET version = k.version, text = k.text, lane = k.lane, taken = k.taken, due_at = k.due_at, expires_at = k.expires_at
        FROM known k WHERE r.row_id = k.row_id RETURNING r.key, r.row_id
      )`,
    );
    writtenRows.push("SELECT key, row_id FROM updated");
  }
  if (stepFlags.inserts) {
    steps.push(`inserted AS (
      INSERT INTO ${tables}.records (key, version, text, lane, taken, due_at, expires_at)
      SELECT key, version, text, lane, taken, due_at, expires_at FROM input WHERE expected IS NULL ORDER BY key
      ON CONFLICT (key) DO NOTHING RETURNING key, row_id
    )`);
    writtenRows.push("SELECT key, row_id FROM inserted");
  }
  steps.push(`written AS MATERIALIZED (${writtenRows.join(" UNION ALL ")})`);
  if (stepFlags.labels) {
    const rows = bind(addedEvents, [
      KEY_COLUMN,
      EVENT_ID_COLUMN,
      ACCEPTED_AT_COLUMN,
      ["flow", "text", ({ labels }) => labels.flow],
      ["tenant", "text", ({ labels }) => labels.tenant],
      ["id", "text", ({ labels }) => labels.id],
      ["event", "text", ({ labels }) => labels.event],
      ["status", "text", ({ labels }) => labels.status],
      ["reference_id", "text", ({ labels }) => labels.referenceId],
    ]);
    steps.push(`labels AS (
      INSERT INTO ${tables}.labels
        (record, accepted_at, flow, tenant, id, event, status, reference_id, event_id)
      SELECT row_id, to_timestamp(accepted_at / 1000), flow, tenant, id, event, status, reference_id, event_id
      FROM ${rows} JOIN written USING (key)
    )`);
  }
  if (stepFlags.readings) {
    steps.push(`readings AS (
      INSERT INTO ${tables}.readings (record, text)
      SELECT row_id, text FROM ${bind(readings, [KEY_COLUMN, ["text", "text", ({ text }) => text]])} JOIN written USING (key)
    )`);
  }
  if (stateChanges.length > 0) {
    const rows = bind(stateChanges, [
      KEY_COLUMN,
      EVENT_ID_COLUMN,
      ACCEPTED_AT_COLUMN,
      ["state", "text", ({ labels }) => labels.state],
      ["reason", "text", ({ labels }) => labels.reason],
      ["change", "text", ({ change }) => change],
    ]);
    const rowsWithChange = (change: StateChange["change"]): string => `${rows} JOIN written USING (key)
      WHERE change = '${change}' AND ${writtenRecordCondition("u")} AND u.record = row_id AND u.event_id = given.event_id`;
    if (stepFlags.opened) {
      steps.push(`opened AS (
        INSERT INTO ${tables}.unfinished (record, event_id, accepted_at, state, reason)
        SELECT row_id, event_id, to_timestamp(accepted_at / 1000), state, reason
        FROM ${rows} JOIN written USING (key) WHERE change = 'opened'
      )`);
    }
    if (stepFlags.moved) {
      steps.push(`moved AS (
        UPDATE ${tables}.unfinished u SET state = given.state, reason = given.reason
        FROM ${rowsWithChange("moved")}
      )`);
    }
    if (stepFlags.closed) {
      steps.push(`closed AS (DELETE FROM ${tables}.unfinished u USING ${rowsWithChange("closed")})`);
    }
  }
  if (stepFlags.gone) {
    steps.push(`unlisted_readings AS (
      DELETE FROM ${tables}.readings s USING ${bind(removedEvents, [KEY_COLUMN])} JOIN written USING (key)
      WHERE ${writtenRecordCondition("s")} AND s.record = row_id
    )`);
    steps.push(`gone AS (
      DELETE FROM ${tables}.labels l USING ${bind(removedEvents, [KEY_COLUMN, EVENT_ID_COLUMN])} JOIN written USING (key)
      WHERE ${writtenRecordCondition("l")} AND l.record = row_id AND l.event_id = given.event_id
    )`);
  }
  const kind = Object.values(stepFlags)
    .map((flag) => (flag ? "1" : "0"))
    .join("");
  const statement: Statement = {
    name: `payhooks_${schema}_swap_${kind}`,
    text: `WITH ${steps.join(", ")}
      SELECT ${NOW_SQL} AS now, (SELECT string_agg(key, ',') FROM written) AS keys, r.key, r.version, r.text
      FROM (SELECT) one LEFT JOIN (
        SELECT key, version, text FROM unnest($1::text[]) AS asked (key) JOIN ${tables}.records USING (key)
        WHERE ${UNEXPIRED_SQL} AND NOT EXISTS (SELECT FROM written WHERE written.key = asked.key)
      ) r ON TRUE`,
  };
  return { statement, values };
}
