import { LANES, type Lane, type Lanes } from "../inbox/record/lane.ts";
import type { Statement } from "./client.ts";

/**
 * The server's clock in whole milliseconds, at the beginning of the statement. Sessions are in UTC, where no hour comes twice.
 */
export const NOW_SQL: string = "CAST(FLOOR(UNIX_TIMESTAMP(NOW(6)) * 1000) AS SIGNED)";

/** The condition for a record that has not expired. */
export const UNEXPIRED_SQL: string = `(r.expires_at IS NULL OR r.expires_at > ${NOW_SQL})`;

/** Columns of times have whole milliseconds. */
export const toWholeMs = (time: number | null): number | null => (time === null ? null : Math.ceil(time));

/** Above this number, due records are not counted exactly. */
const MAX_COUNTED_DUE = 1_000;
/** How many expired records one step deletes. */
const PRUNE_BATCH_SIZE = 200;

/**
 * The records with these keys, except those with one of these versions. Each row has the server's time. Without any
 * record, there is one row without a key.
 */
export function readRecords(
  prefix: string,
  keys: readonly string[],
  exceptVersions: readonly string[] = [""],
): Statement {
  return [
    `SELECT ${NOW_SQL} AS now, r.\`key\`, r.version, r.text FROM (SELECT 1) one
    LEFT JOIN ${prefix}_records r ON r.\`key\` IN (?) AND r.version NOT IN (?) AND ${UNEXPIRED_SQL}`,
    keys,
    exceptVersions,
  ];
}

/**
 * Deletes records together with their events and readings. `source` is the beginning of a FROM, in which the records
 * are named `r`.
 */
export function deleteRecords(prefix: string, source: string): string {
  return `DELETE r, e, s FROM ${source} LEFT JOIN ${prefix}_events e ON e.record = r.row_id
    LEFT JOIN ${prefix}_readings s ON s.record = r.row_id`;
}

/** Deletes some records that have expired, and returns whether there are more. */
export function pruneRecords(prefix: string, before: number): readonly Statement[] {
  const expiredSql = `FROM ${prefix}_records WHERE expires_at <= ?`;
  const expiredRows = `(SELECT row_id ${expiredSql} ORDER BY expires_at LIMIT ${PRUNE_BATCH_SIZE} FOR UPDATE SKIP LOCKED) gone`;
  return [
    [deleteRecords(prefix, `${expiredRows} JOIN ${prefix}_records r ON r.row_id = gone.row_id`), before],
    [`SELECT EXISTS (SELECT 1 ${expiredSql}) AS is_more`, before],
  ];
}

/** The records of a lane that a transaction has taken, as `r`. A variable of the session has their row ids. */
function takenRecordsSql(prefix: string, lane: Lane): string {
  return `JSON_TABLE(@payhooks_${lane}, '$[*]' COLUMNS (row_id BIGINT PATH '$.row_id', since BIGINT PATH '$.since')) taken
    STRAIGHT_JOIN ${prefix}_records r FORCE INDEX (PRIMARY) ON r.row_id = taken.row_id`;
}

/** Takes due records of a lane, and hides them. It skips the records that others are taking or writing. */
function takeStatements(
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
        WHERE lane = ? AND due_at >= ? AND due_at <= ${NOW_SQL} ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED
      ) due`,
      lane,
      from,
      limit,
    ],
    [`UPDATE ${takenRecordsSql(prefix, lane)} SET r.due_at = ${NOW_SQL} + ?`, Math.ceil(hideMs)],
  ];
}

/** The earliest due time of all lanes, of the records that this condition holds for. It is a subquery. */
function earliestDueSql(prefix: string, condition: string): string {
  const laneQueries = LANES.map(
    (lane) => `SELECT MIN(due_at) AS at FROM ${prefix}_records WHERE lane = '${lane}' AND ${condition}`,
  );
  return `(SELECT MIN(at) FROM (${laneQueries.join(" UNION ALL ")}) lanes)`;
}

/** The condition for a record that has been due since this time or later. */
const dueCondition = (from: number): string => `due_at >= ${from} AND due_at <= ${NOW_SQL}`;

/** Counts the due records that were left, and finds since when the first has been due, and when the next falls due. */
function countDue(prefix: string, maxCount: number, from: number): Statement {
  const countSql = (lane: Lane): string =>
    `(SELECT COUNT(*) FROM (
      SELECT 1 FROM ${prefix}_records WHERE lane = '${lane}' AND ${dueCondition(from)} LIMIT ${maxCount}
    ) due) AS ${lane}`;
  return [
    `SELECT ${NOW_SQL} AS now, ${LANES.map(countSql).join(", ")}, ${earliestDueSql(prefix, dueCondition(from))} AS oldest,
    ${earliestDueSql(prefix, `due_at > ${NOW_SQL}`)} AS next`,
  ];
}

/** Finds since when the first record of all has been due, however long ago that is. */
export function findOldestDue(prefix: string): Statement {
  return [`SELECT ${NOW_SQL} AS now, ${earliestDueSql(prefix, `due_at <= ${NOW_SQL}`)} AS oldest`];
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
  if (lanes.length === 0) return [countDue(prefix, MAX_COUNTED_DUE, from)];
  const readTaken = (lane: Lane): Statement => [
    `SELECT r.\`key\`, r.version, r.text FROM ${takenRecordsSql(prefix, lane)} ORDER BY taken.since`,
  ];
  return [
    ["START TRANSACTION"],
    ...lanes.flatMap((lane) => takeStatements(prefix, lane, limit[lane], hideMs, from)),
    ["COMMIT"],
    ...lanes.map(readTaken),
    countDue(prefix, 1, from),
  ];
}

/**
 * How many events there are in each unfinished state, and when the first record became due, at `from` or later.
 */
export function countEvents(prefix: string, from: number): readonly Statement[] {
  return [
    [
      `SELECT state, reason, COUNT(*) AS n FROM ${prefix}_events
      WHERE state IN ('waiting', 'retrying', 'running', 'held') GROUP BY state, reason`,
    ],
    [`SELECT ${NOW_SQL} AS now, ${earliestDueSql(prefix, dueCondition(from))} AS oldest`],
  ];
}
