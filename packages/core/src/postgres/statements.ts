import { LANES } from "../inbox/record/lane.ts";
import { OLDEST_DUE_TIMEOUT_MS } from "../sql/due-bound.ts";
import type { Statement } from "./client.ts";
import { quoteSchema } from "./schema.ts";

/** The server's clock in whole milliseconds, at the time when it received the statement. */
export const NOW_SQL: string = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

/** The condition for records that have not expired. */
export const UNEXPIRED_SQL: string = `(expires_at IS NULL OR expires_at > ${NOW_SQL})`;

/** Columns of times have whole milliseconds. */
export const toWholeMs = (time: number | null): number | null => (time === null ? null : Math.ceil(time));

/** How many expired records one step deletes. */
export const PRUNE_BATCH_SIZE = 200;

/** The statements of a store. Each one is a transaction by itself. */
export interface Statements {
  readonly read: Statement;
  /** Reads the record of one key. */
  readonly readOne: Statement;
  readonly scan: Statement;
  /**
   * Takes due records of one lane. `$1`: how many; `$2`: for how many milliseconds; `$3`: from which due time on; `$4`:
   * the lane. If the poll includes a query for ended leases, `$5` is the end from which on it looks, and `$6` how far it
   * looks ahead; otherwise both are null.
   */
  readonly takeDue: Statement;
  readonly countDue: Statement;
  readonly oldestDue: Statement;
  readonly oldestTakenEnd: Statement;
  readonly deleteExpired: Statement;
  readonly prune: Statement;
  readonly readNote: Statement;
  readonly writeNote: Statement;
  readonly counts: Statement;
  readonly announce: Statement;
  readonly listen: Statement;
  readonly time: Statement;
}

/**
 * The channel of hints. Any role may notify any channel whose name it knows. So the name contains the id of the data set, which
 * only roles that may read the tables know. It changes with the data.
 */
const CHANNEL_SQL = "'payhooks_' || dataset_id";

/** Listens only to the channel of the current data. Does nothing if there is no data yet. */
export function listenSql(schema: string): string {
  const tables = quoteSchema(schema);
  return `DO $payhooks$
  DECLARE channel text;
  BEGIN
    IF to_regclass('${tables}.meta') IS NOT NULL THEN
      SELECT ${CHANNEL_SQL} INTO channel FROM ${tables}.meta;
      IF channel IS NOT NULL AND channel NOT IN (SELECT pg_listening_channels()) THEN
        UNLISTEN *;
        EXECUTE format('LISTEN %I', channel);
      END IF;
    END IF;
  END
  $payhooks$`;
}

/** The statements for the tables of one schema. */
export function statementsFor(schema: string): Statements {
  const tables = quoteSchema(schema);
  const statement = (name: string, text: string): Statement => ({ name: `payhooks_${schema}_${name}`, text });
  /** The records of a lane that nobody has. */
  const waitingRecords = (lane: string): string => `${tables}.records WHERE NOT taken AND lane = ${lane}`;
  /** The records of a lane that somebody has: a run by its lease, or a process by a poll. */
  const takenRecords = (lane: string): string => `${tables}.records WHERE taken AND lane = ${lane}`;
  /** Those that are due, from this time on. */
  const dueRecords = (records: string, from: string): string =>
    `${records} AND due_at >= ${from}::bigint AND due_at <= ${NOW_SQL}`;
  /** The earliest due time of all lanes. */
  const earliestDueSql = (records: (lane: string) => string, more = ""): string =>
    `least(${LANES.map((lane) => `(SELECT min(due_at) FROM ${records(`'${lane}'`)}${more})`).join(", ")})`;
  const laterCondition = ` AND due_at > ${NOW_SQL}`;
  /** Those of them that this statement does not give out. */
  const notGivenCondition = " AND row_id <> ALL (ARRAY(SELECT row_id FROM given))";
  const firstLeftSql = (records: string, from: string): string =>
    `(SELECT due_at FROM ${dueRecords(records, from)}${notGivenCondition} ORDER BY due_at LIMIT 1)`;
  const countOf = (records: string): string =>
    `(SELECT count(*) FROM (SELECT FROM ${records} LIMIT $1::int) counted)`;
  const oldestDueSql = (records: (lane: string) => string): string =>
    `SELECT ${NOW_SQL} AS now, ${earliestDueSql(records, ` AND due_at <= ${NOW_SQL}`)}::float8 AS oldest`;
  const deleteWithLabels = (records: string): string => `
    WITH gone AS (${records} RETURNING row_id),
      labels AS (DELETE FROM ${tables}.labels WHERE record IN (SELECT row_id FROM gone)),
      readings AS (DELETE FROM ${tables}.readings WHERE record IN (SELECT row_id FROM gone))
    SELECT ${NOW_SQL} AS now, count(*)::float8 AS n FROM gone`;
  return {
    read: statement(
      "read",
      `SELECT ${NOW_SQL} AS now, key, version, text
      FROM (SELECT) one LEFT JOIN ${tables}.records ON key = ANY ($1::text[]) AND ${UNEXPIRED_SQL}`,
    ),
    readOne: statement(
      "read_one",
      `SELECT ${NOW_SQL} AS now, key, version, text
      FROM (SELECT) one LEFT JOIN ${tables}.records ON key = $1::text AND ${UNEXPIRED_SQL}`,
    ),
    scan: statement(
      "scan",
      `SELECT row_id::text AS row_id, key, version, text, ${UNEXPIRED_SQL} AS is_there
      FROM ${tables}.records r WHERE r.row_id > $1::bigint ORDER BY r.row_id LIMIT $2::int`,
    ),
    takeDue: statement(
      "take_due",
      `WITH waiting AS MATERIALIZED (
        SELECT row_id, due_at FROM ${dueRecords(waitingRecords("$4::text"), "$3")}
        ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED
      ), lapsed AS MATERIALIZED (
        SELECT row_id, due_at FROM ${dueRecords(takenRecords("$4::text"), "$5")}
        ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED
      ), due AS MATERIALIZED (
        SELECT row_id, due_at FROM (SELECT * FROM waiting UNION ALL SELECT * FROM lapsed) found
        ORDER BY due_at LIMIT $1::int
      ), given AS (
        UPDATE ${tables}.records r SET due_at = ${NOW_SQL} + $2::bigint, taken = TRUE FROM due WHERE r.row_id = due.row_id
        RETURNING r.row_id, r.key, due.due_at AS since
      ), others AS (
        SELECT ${earliestDueSql(waitingRecords, laterCondition)} AS next,
          ${earliestDueSql(takenRecords, `${laterCondition} AND due_at <= ${NOW_SQL} + $6::bigint`)} AS next_end,
          ${LANES.flatMap((lane) => [
            `${firstLeftSql(waitingRecords(`'${lane}'`), "$3")} AS ${lane}`,
            `${firstLeftSql(takenRecords(`'${lane}'`), "$5")} AS ${lane}_lapsed`,
          ]).join(", ")}
      )
      SELECT ${NOW_SQL} AS now, least(${LANES.join(", ")})::float8 AS oldest,
        least(${LANES.map((lane) => `${lane}_lapsed`).join(", ")})::float8 AS lapsed_at,
        ${LANES.map((lane) => `(least(${lane}, ${lane}_lapsed) IS NOT NULL)::int AS ${lane}`).join(", ")},
        next::float8 AS next, next_end::float8 AS next_end, key
      FROM others LEFT JOIN given ON TRUE ORDER BY since`,
    ),
    countDue: statement(
      "look_at_due",
      `SELECT ${NOW_SQL} AS now, least(${earliestDueSql(waitingRecords, laterCondition)}, ${earliestDueSql(takenRecords, laterCondition)})::float8 AS next,
        ${earliestDueSql((lane) => dueRecords(waitingRecords(lane), "$2"))}::float8 AS oldest,
        ${earliestDueSql((lane) => dueRecords(takenRecords(lane), "$3"))}::float8 AS lapsed_at,
        ${LANES.map((lane) => {
          const dueSources = [
            dueRecords(waitingRecords(`'${lane}'`), "$2"),
            dueRecords(takenRecords(`'${lane}'`), "$3"),
          ];
          return `(${dueSources.map(countOf).join(" + ")})::float8 AS ${lane}`;
        }).join(", ")}`,
    ),
    oldestDue: {
      ...statement("look_at_all", oldestDueSql(waitingRecords)),
      timeLimitMs: OLDEST_DUE_TIMEOUT_MS,
    },
    oldestTakenEnd: {
      ...statement("look_at_taken", oldestDueSql(takenRecords)),
      timeLimitMs: OLDEST_DUE_TIMEOUT_MS,
    },
    deleteExpired: statement(
      "forget",
      deleteWithLabels(
        `DELETE FROM ${tables}.records WHERE key = ANY ($1::text[]) AND expires_at <= ${NOW_SQL}`,
      ),
    ),
    prune: statement(
      "prune",
      deleteWithLabels(`DELETE FROM ${tables}.records WHERE row_id = ANY (ARRAY(
        SELECT row_id FROM ${tables}.records WHERE expires_at <= $1::bigint
        ORDER BY expires_at LIMIT ${PRUNE_BATCH_SIZE} FOR UPDATE SKIP LOCKED))`),
    ),
    readNote: statement("read_note", `SELECT text FROM ${tables}.notes WHERE name = $1`),
    writeNote: statement(
      "write_note",
      `INSERT INTO ${tables}.notes (name, text) VALUES ($1, $2)
      ON CONFLICT (name) DO UPDATE SET text = excluded.text`,
    ),
    counts: statement(
      "counts",
      `SELECT state, reason, count(*)::float8 AS n FROM ${tables}.unfinished GROUP BY state, reason`,
    ),
    announce: statement("announce", `SELECT pg_notify(${CHANNEL_SQL}, '') FROM ${tables}.meta`),
    listen: { name: "", text: listenSql(schema) },
    time: statement("time", `SELECT ${NOW_SQL} AS now`),
  };
}
