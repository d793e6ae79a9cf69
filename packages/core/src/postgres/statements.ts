import { LANES, type Lane } from "../inbox/record/lane.ts";
import type { Statement } from "./client.ts";
import { quoted } from "./schema.ts";

/** The server's clock in whole milliseconds, at the time when it received the statement. */
export const NOW: string = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

/** The condition for records that have not expired. */
export const UNEXPIRED: string = `(expires_at IS NULL OR expires_at > ${NOW})`;

/** Columns of times have whole milliseconds. */
export const whole = (time: number | null): number | null => (time === null ? null : Math.ceil(time));

/** A write whose time is further in the past was computed too long ago, and a due time counts as no earlier. */
export const MAX_AGE_MS = 5_000;

/** How many records whose lease has ended become due by one statement. */
const RELEASED_AT_ONCE = 1_000;

/** How many expired records one step deletes. */
export const PRUNED_AT_ONCE = 200;

/** The statements of a store. Each one is a transaction by itself. */
export interface Statements {
  readonly read: Statement;
  /** The same for one key. */
  readonly readOne: Statement;
  readonly scan: Statement;
  readonly takeDue: Statement;
  /** Makes the records due whose lease, or whose hiding after a poll, has ended. */
  readonly releaseLapsed: Statement;
  readonly lookAtDue: Statement;
  readonly lookAtAll: Statement;
  readonly lookAtAllTaken: Statement;
  readonly forget: Statement;
  readonly prune: Statement;
  readonly readMeta: Statement;
  readonly writeMeta: Statement;
  readonly counts: Statement;
  readonly announce: Statement;
  readonly listen: Statement;
  readonly time: Statement;
}

/**
 * The channel of hints. Any role may notify any channel whose name it knows. So the name contains the id of the data set, which
 * only roles that may read the tables know. It changes with the data.
 */
const CHANNEL = "'payhooks_' || dataset_id";

/** Listens only to the channel of the current data. Does nothing if there is no data yet. */
export function listenTo(schema: string): string {
  const tables = quoted(schema);
  return `DO $payhooks$
  DECLARE channel text;
  BEGIN
    IF to_regclass('${tables}.meta') IS NOT NULL THEN
      SELECT ${CHANNEL} INTO channel FROM ${tables}.meta;
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
  const tables = quoted(schema);
  const statement = (name: string, text: string): Statement => ({ name: `payhooks_${schema}_${name}`, text });
  /** The records that wait in a lane. */
  const waiting = (lane: string): string => `${tables}.records WHERE NOT taken AND lane = ${lane}`;
  /** Those of them that are due, from this time on. */
  const due = (lane: Lane, from: string): string =>
    `${waiting(`'${lane}'`)} AND due_at >= ${from}::bigint AND due_at <= ${NOW}`;
  /** The records whose lease or hiding has ended since this time, and that wait again, although they still count as taken. */
  const lapsed = (from: string): string =>
    `${tables}.records WHERE taken AND due_at >= ${from}::bigint AND due_at <= ${NOW}`;
  const oldest = (lane: Lane, from: string): string =>
    `(SELECT due_at FROM ${due(lane, from)} AND row_id <> ALL (ARRAY(SELECT row_id FROM taken)) ORDER BY due_at LIMIT 1)`;
  const next = `least(${LANES.map(
    (lane) => `(SELECT min(due_at) FROM ${waiting(`'${lane}'`)} AND due_at > ${NOW})`,
  ).join(", ")})`;
  const withoutLabels = (records: string): string => `
    WITH gone AS (${records} RETURNING row_id),
      labels AS (DELETE FROM ${tables}.labels WHERE record IN (SELECT row_id FROM gone)),
      readings AS (DELETE FROM ${tables}.readings WHERE record IN (SELECT row_id FROM gone))
    SELECT ${NOW} AS now, count(*)::float8 AS n FROM gone`;
  return {
    read: statement(
      "read",
      `SELECT ${NOW} AS now, key, version, text
      FROM (SELECT) one LEFT JOIN ${tables}.records ON key = ANY ($1::text[]) AND ${UNEXPIRED}`,
    ),
    readOne: statement(
      "read_one",
      `SELECT ${NOW} AS now, key, version, text
      FROM (SELECT) one LEFT JOIN ${tables}.records ON key = $1::text AND ${UNEXPIRED}`,
    ),
    scan: statement(
      "scan",
      `SELECT row_id::text AS row_id, key, version, text, ${UNEXPIRED} AS is_there
      FROM ${tables}.records r WHERE r.row_id > $1::bigint ORDER BY r.row_id LIMIT $2::int`,
    ),
    takeDue: statement(
      "take_due",
      `WITH due AS MATERIALIZED (
        SELECT row_id, due_at FROM ${waiting("$4::text")} AND due_at >= $3::bigint AND due_at <= ${NOW}
        ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED
      ), taken AS (
        UPDATE ${tables}.records r SET due_at = ${NOW} + $2::bigint, taken = TRUE FROM due WHERE r.row_id = due.row_id
        RETURNING r.row_id, r.key, due.due_at AS since
      ), others AS (
        SELECT ${next} AS next, ${LANES.map((lane) => `${oldest(lane, "$3")} AS ${lane}`).join(", ")}
      )
      SELECT ${NOW} AS now, least(usual, patient)::float8 AS oldest,
        ${LANES.map((lane) => `(${lane} IS NOT NULL)::int AS ${lane}`).join(", ")},
        next::float8 AS next, key
      FROM others LEFT JOIN taken ON TRUE ORDER BY since`,
    ),
    releaseLapsed: statement(
      "release_lapsed",
      `WITH ending AS MATERIALIZED (
        SELECT row_id, due_at FROM ${tables}.records
        WHERE taken AND due_at >= $1::bigint AND due_at <= ${NOW} + $2::bigint
        ORDER BY due_at LIMIT ${RELEASED_AT_ONCE + 1}
      ), lapsed AS MATERIALIZED (
        SELECT row_id FROM ${tables}.records
        WHERE row_id = ANY (ARRAY(SELECT row_id FROM ending ORDER BY due_at LIMIT ${RELEASED_AT_ONCE}))
          AND taken AND due_at <= ${NOW} FOR UPDATE SKIP LOCKED
      ), released AS (
        UPDATE ${tables}.records r SET taken = FALSE, due_at = greatest(due_at, ${NOW} - ${MAX_AGE_MS})
        FROM lapsed WHERE r.row_id = lapsed.row_id
      )
      SELECT ${NOW} AS now,
        min(due_at) FILTER (WHERE due_at <= ${NOW} AND row_id <> ALL (ARRAY(SELECT row_id FROM lapsed)))::float8 AS left_at,
        min(due_at) FILTER (WHERE due_at > ${NOW})::float8 AS next
      FROM ending`,
    ),
    lookAtDue: statement(
      "look_at_due",
      `SELECT ${NOW} AS now,
        least(${next}, (SELECT min(due_at) FROM ${tables}.records WHERE taken AND due_at > ${NOW}))::float8 AS next,
        least(${LANES.map((lane) => `(SELECT min(due_at) FROM ${due(lane, "$2")})`).join(", ")})::float8 AS oldest,
        (SELECT min(due_at) FROM ${lapsed("$3")})::float8 AS lapsed_at,
        ${LANES.map(
          (lane) => `((SELECT count(*) FROM (SELECT FROM ${due(lane, "$2")} LIMIT $1::int) due)
          + (SELECT count(*) FROM (SELECT FROM ${lapsed("$3")} AND lane = '${lane}' LIMIT $1::int) lapsed))::float8 AS ${lane}`,
        ).join(", ")}`,
    ),
    lookAtAll: {
      ...statement(
        "look_at_all",
        `SELECT ${NOW} AS now, least(${LANES.map(
          (lane) => `(SELECT min(due_at) FROM ${waiting(`'${lane}'`)} AND due_at <= ${NOW})`,
        ).join(", ")})::float8 AS oldest`,
      ),
      ownLimitMs: 15_000,
    },
    lookAtAllTaken: {
      ...statement(
        "look_at_all_taken",
        `SELECT ${NOW} AS now, (SELECT min(due_at) FROM ${tables}.records WHERE taken AND due_at <= ${NOW})::float8 AS oldest`,
      ),
      ownLimitMs: 15_000,
    },
    forget: statement(
      "forget",
      withoutLabels(`DELETE FROM ${tables}.records WHERE key = ANY ($1::text[]) AND expires_at <= ${NOW}`),
    ),
    prune: statement(
      "prune",
      withoutLabels(`DELETE FROM ${tables}.records WHERE row_id = ANY (ARRAY(
        SELECT row_id FROM ${tables}.records WHERE expires_at <= $1::bigint
        ORDER BY expires_at LIMIT ${PRUNED_AT_ONCE} FOR UPDATE SKIP LOCKED))`),
    ),
    readMeta: statement("read_note", `SELECT text FROM ${tables}.notes WHERE name = $1`),
    writeMeta: statement(
      "write_note",
      `INSERT INTO ${tables}.notes (name, text) VALUES ($1, $2)
      ON CONFLICT (name) DO UPDATE SET text = excluded.text`,
    ),
    counts: statement(
      "counts",
      `SELECT state, reason, count(*)::float8 AS n FROM ${tables}.unfinished GROUP BY state, reason`,
    ),
    announce: statement("announce", `SELECT pg_notify(${CHANNEL}, '') FROM ${tables}.meta`),
    listen: { name: "", text: listenTo(schema) },
    time: statement("time", `SELECT ${NOW} AS now`),
  };
}
