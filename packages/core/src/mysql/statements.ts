import { LANES, type Lane, type Lanes } from "../inbox/record/lane.ts";
import type { Statement } from "./client.ts";

/**
 * The server's clock in whole milliseconds, at the beginning of the statement. Sessions are in UTC, where no hour comes twice.
 */
export const NOW: string = "CAST(FLOOR(UNIX_TIMESTAMP(NOW(6)) * 1000) AS SIGNED)";

/** The condition for a record that has not expired. */
export const UNEXPIRED: string = `(r.expires_at IS NULL OR r.expires_at > ${NOW})`;

/** Columns of times have whole milliseconds. */
export const whole = (time: number | null): number | null => (time === null ? null : Math.ceil(time));

/** Above this number, due records are not counted exactly. */
const COUNTED_DUE = 1_000;
/** How many expired records one step deletes. */
const PRUNED_AT_ONCE = 200;

/**
 * The records with these keys, except those with one of these versions. Each row has the server's time. Without any
 * record, there is one row without a key.
 */
export function readRecords(
  prefix: string,
  keys: readonly string[],
  butFor: readonly string[] = [""],
): Statement {
  return [
    `SELECT ${NOW} AS now, r.\`key\`, r.version, r.text FROM (SELECT 1) one
    LEFT JOIN ${prefix}_records r ON r.\`key\` IN (?) AND r.version NOT IN (?) AND ${UNEXPIRED}`,
    keys,
    butFor,
  ];
}

/**
 * Deletes records together with their events and readings. `chosen` is the beginning of a FROM, in which the records
 * are named `r`.
 */
export function deleteRecords(prefix: string, chosen: string): string {
  return `DELETE r, e, s FROM ${chosen} LEFT JOIN ${prefix}_events e ON e.record = r.row_id
    LEFT JOIN ${prefix}_readings s ON s.record = r.row_id`;
}

/** Deletes some records that have expired, and returns whether there are more. */
export function pruneRecords(prefix: string, before: number): readonly Statement[] {
  const expired = `FROM ${prefix}_records WHERE expires_at <= ?`;
  const some = `(SELECT row_id ${expired} ORDER BY expires_at LIMIT ${PRUNED_AT_ONCE} FOR UPDATE SKIP LOCKED) gone`;
  return [
    [deleteRecords(prefix, `${some} JOIN ${prefix}_records r ON r.row_id = gone.row_id`), before],
    [`SELECT EXISTS (SELECT 1 ${expired}) AS is_more`, before],
  ];
}

/** The records of a lane that a transaction has taken, as `r`. A variable of the session has their row ids. */
function takenOf(prefix: string, lane: Lane): string {
  return `JSON_TABLE(@payhooks_${lane}, '$[*]' COLUMNS (row_id BIGINT PATH '$.row_id', since BIGINT PATH '$.since')) taken
    STRAIGHT_JOIN ${prefix}_records r FORCE INDEX (PRIMARY) ON r.row_id = taken.row_id`;
}

/** Takes due records of a lane, and hides them. It skips the records that others are taking or writing. */
function takeOf(
  prefix: string,
  lane: Lane,
  limit: number,
  hideMs: number,
  from: number,
): readonly Statement[] {
  return [
    [
      `SELECT JSON_ARRAYAGG(JSON_OBJECT('row_id', row_id, 'since', due_at)) INTO @payhooks_${lane} FROM (
        SELECT row_id, due_at FROM ${prefix}_records FORCE INDEX (by_due)
        WHERE lane = ? AND due_at >= ? AND due_at <= ${NOW} ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED
      ) due`,
      lane,
      from,
      limit,
    ],
    [`UPDATE ${takenOf(prefix, lane)} SET r.due_at = ${NOW} + ?`, Math.ceil(hideMs)],
  ];
}

/** The earliest due time of all lanes, of the records that this condition holds for. It is a subquery. */
function earliest(prefix: string, condition: string): string {
  const ofLanes = LANES.map(
    (lane) => `SELECT MIN(due_at) AS at FROM ${prefix}_records WHERE lane = '${lane}' AND ${condition}`,
  );
  return `(SELECT MIN(at) FROM (${ofLanes.join(" UNION ALL ")}) lanes)`;
}

/** The condition for a record that has been due since this time or later. */
const dueFrom = (from: number): string => `due_at >= ${from} AND due_at <= ${NOW}`;

/** Counts the due records that were left, and finds since when the first has been due, and when the next falls due. */
function lookAt(prefix: string, counted: number, from: number): Statement {
  const due = (lane: Lane): string =>
    `(SELECT COUNT(*) FROM (
      SELECT 1 FROM ${prefix}_records WHERE lane = '${lane}' AND ${dueFrom(from)} LIMIT ${counted}
    ) due) AS ${lane}`;
  return [
    `SELECT ${NOW} AS now, ${LANES.map(due).join(", ")}, ${earliest(prefix, dueFrom(from))} AS oldest,
    ${earliest(prefix, `due_at > ${NOW}`)} AS next`,
  ];
}

/** Finds since when the first record of all has been due, however long ago that is. */
export function lookAtAll(prefix: string): Statement {
  return [`SELECT ${NOW} AS now, ${earliest(prefix, `due_at <= ${NOW}`)} AS oldest`];
}

/**
 * Takes due records of each lane, in one transaction. So if it is rolled back, no record stays hidden that no process
 * has taken. Its locks end before texts are sent. It looks at the records that have been due since `from` or later. The
 * answers are the records of each lane that something is taken of, and then what is left.
 */
export function takeRecords(
  prefix: string,
  limit: Lanes,
  hideMs: number,
  from: number,
): readonly Statement[] {
  const lanes = LANES.filter((lane) => limit[lane] > 0);
  if (lanes.length === 0) return [lookAt(prefix, COUNTED_DUE, from)];
  const read = (lane: Lane): Statement => [
    `SELECT r.\`key\`, r.version, r.text FROM ${takenOf(prefix, lane)} ORDER BY taken.since`,
  ];
  return [
    ["START TRANSACTION"],
    ...lanes.flatMap((lane) => takeOf(prefix, lane, limit[lane], hideMs, from)),
    ["COMMIT"],
    ...lanes.map(read),
    lookAt(prefix, 1, from),
  ];
}

/**
 * How many events there are in each state that is no end, and since when the first record has been due: since `from` or later.
 */
export function countEvents(prefix: string, from: number): readonly Statement[] {
  return [
    [
      `SELECT state, reason, COUNT(*) AS n FROM ${prefix}_events
      WHERE state IN ('waiting', 'retrying', 'running', 'held') GROUP BY state, reason`,
    ],
    [`SELECT ${NOW} AS now, ${earliest(prefix, dueFrom(from))} AS oldest`],
  ];
}
