import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { ListCursor, ListOrder, ListPage } from "../inbox/contract/store.ts";
import { MAX_SCANNED_EVENTS, pageOf } from "../sql/event-page.ts";
import { type BoundValue, Terms } from "../sql/terms.ts";
import type { Row, Statement } from "./client.ts";

/** How many events are passed over at most to find finished ones, which have no index of their own. */
const MAX_PASSED_EVENTS = 20_000;
const UNFINISHED_STATES = ["waiting", "retrying", "running", "held"] as const;

/** The columns that a summary is made of. */
const SUMMARY_COLUMNS = `l.event_id, coalesce(u.state, 'finished') AS state, u.reason, l.flow, l.tenant, l.id, l.event, l.status, l.reference_id,
  (extract(epoch FROM l.accepted_at) * 1000)::float8 AS accepted_at`;

const UNEXPIRED_SQL =
  "(r.expires_at IS NULL OR r.expires_at > extract(epoch FROM statement_timestamp()) * 1000)";

/** Rows may be left of a record that is gone, and another record may have its row id since. */
const LABEL_OF_RECORD_SQL = "starts_with(l.event_id, r.key)";

/** Matches events with this id or reference, or with a reading that has it. There is an index for either. */
const nameCondition = (schema: string, column: string): string =>
  `(${column} = ? OR l.record = ANY (ARRAY(SELECT record FROM ${schema}.readings WHERE text = ?)))`;

type RunStatement = (statement: Statement, values: readonly BoundValue[]) => Promise<readonly Row[]>;

/**
 * A page of events. The conditions that an index can serve choose a bounded number of events. The other conditions are then
 * applied to these, so that no filter makes a call long.
 */
export async function listEvents(
  schema: string,
  filter: EventFilter,
  cursor: ListCursor | null,
  limit: number,
  first: ListOrder,
  run: RunStatement,
): Promise<ListPage> {
  const values: BoundValue[] = [];
  const bind = (value: BoundValue): string => `$${values.push(value)}`;
  const nameTerms = new Terms(bind);
  const scanTerms = new Terms(bind);
  const filterTerms = new Terms(bind);
  const { id, referenceId, state } = filter;
  const [order, afterOperator] = first === "oldest" ? ["ASC", ">"] : ["DESC", "<"];
  const isNamed = id !== undefined || referenceId !== undefined;
  const isByState = !isNamed && state !== "finished" && state !== "any";
  if (id !== undefined) nameTerms.add(nameCondition(schema, "l.id"), id, id);
  else if (referenceId !== undefined)
    nameTerms.add(nameCondition(schema, "l.reference_id"), referenceId, referenceId);
  // The offset keeps the server from walking through all events in their order until enough of them have the name.
  const labels = isNamed
    ? `(SELECT l.* FROM ${schema}.labels l WHERE ${nameTerms} OFFSET 0)`
    : `${schema}.labels`;
  // Both tables have this column. The index of the table that leads the query is used.
  const leadTable = isByState ? "one" : "l";
  scanTerms.add(`${leadTable}.accepted_at >= to_timestamp(?::float8 / 1000)`, filter.since);
  scanTerms.add(`${leadTable}.accepted_at < to_timestamp(?::float8 / 1000)`, filter.until);
  scanTerms.add(
    `(${leadTable}.accepted_at, ${leadTable}.event_id) ${afterOperator} (to_timestamp(?::float8 / 1000), ?)`,
    cursor?.acceptedAt,
    cursor?.eventId,
  );
  if (id !== undefined) filterTerms.add(nameCondition(schema, "l.reference_id"), referenceId, referenceId);
  if (state === undefined) filterTerms.add("u.state IS NOT NULL");
  filterTerms.add("coalesce(u.state, 'finished') = ?", state === "any" ? undefined : state);
  filterTerms.add("l.flow = ?", filter.flow);
  filterTerms.add("l.tenant = ?", filter.tenant);
  filterTerms.add("l.event = ?", filter.event);
  filterTerms.add("u.reason = ?", filter.reason);
  const maxRows = Math.max(limit, MAX_SCANNED_EVENTS);
  const inOrder = (table: string): string =>
    `ORDER BY ${table}.accepted_at ${order}, ${table}.event_id ${order}`;
  // Takes the first events of each state by the index, and then the first of all these.
  const states = (state === undefined ? UNFINISHED_STATES : [state]).map((name) => `'${name}'`).join(", ");
  const stateEvents = `SELECT one.* FROM unnest(ARRAY[${states}]) AS wanted (state) CROSS JOIN LATERAL (
      SELECT one.* FROM ${schema}.unfinished one WHERE one.state = wanted.state AND ${scanTerms}
      ${inOrder("one")} LIMIT ${maxRows}
    ) one ${inOrder("one")} LIMIT ${maxRows}`;
  const unfinished = `${schema}.unfinished u`;
  const labelMatch = "u.record = l.record AND u.event_id = l.event_id";
  const selectLabels = (maxLabels: number): string =>
    `(SELECT l.* FROM ${labels} l WHERE ${scanTerms} ${inOrder("l")} LIMIT ${maxLabels}) l`;
  // Unfinished events are left out, except the last, after which the next page begins.
  const finishedEvents = `(
      SELECT l.* FROM (SELECT l.*, row_number() OVER () AS n FROM ${selectLabels(MAX_PASSED_EVENTS)}) l
      WHERE l.n = ${MAX_PASSED_EVENTS} OR NOT EXISTS (SELECT FROM ${unfinished} WHERE ${labelMatch})
      ${inOrder("l")} LIMIT ${maxRows}
    ) l`;
  const isForFinished = !isNamed && state === "finished";
  const eventSource = isByState
    ? `(${stateEvents}) u JOIN ${schema}.labels l ON ${labelMatch}`
    : `${isForFinished ? finishedEvents : selectLabels(maxRows)} LEFT JOIN ${unfinished} ON ${labelMatch}`;
  const rowNumber = isForFinished ? "l.n" : "NULL";
  const text = `
    SELECT ${SUMMARY_COLUMNS}, ${rowNumber} AS n, r.version, r.text FROM ${eventSource}
    LEFT JOIN ${schema}.records r ON r.row_id = l.record AND ${LABEL_OF_RECORD_SQL} AND ${filterTerms} AND ${UNEXPIRED_SQL}
    ${inOrder("l")}`;
  // It has no name, because it differs for each filter. A stored plan would not be used again.
  const rows = await run({ name: "", text }, values);
  return pageOf(rows, limit, rows.length === maxRows || Number(rows.at(-1)?.n) === MAX_PASSED_EVENTS);
}
