import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { ListCursor, Listed, ListOrder } from "../inbox/contract/store.ts";
import { LOOKED_AT, pageOf } from "../sql/event-page.ts";
import { type BoundValue, Terms } from "../sql/terms.ts";
import type { Row, Statement } from "./client.ts";

/** How many events are passed over at most to find finished ones, which have no index of their own. */
const PASSED_OVER = 20_000;
const UNFINISHED = ["waiting", "retrying", "running", "held"] as const;

/** The columns that a summary is made of. */
const SUMMARY = `l.event_id, coalesce(u.state, 'finished') AS state, u.reason, l.flow, l.tenant, l.id, l.event, l.status, l.reference_id,
  (extract(epoch FROM l.accepted_at) * 1000)::float8 AS accepted_at`;

const UNEXPIRED = "(r.expires_at IS NULL OR r.expires_at > extract(epoch FROM statement_timestamp()) * 1000)";

/** Rows may be left of a record that is gone, and another record may have its row id since. */
const OF_RECORD = "starts_with(l.event_id, r.key)";

/** Matches events with this id or reference, or with a reading that has it. There is an index for either. */
const named = (schema: string, column: string): string =>
  `(${column} = ? OR l.record = ANY (ARRAY(SELECT record FROM ${schema}.readings WHERE text = ?)))`;

type Run = (statement: Statement, values: readonly BoundValue[]) => Promise<readonly Row[]>;

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
  run: Run,
): Promise<Listed> {
  const values: BoundValue[] = [];
  const bind = (value: BoundValue): string => `$${values.push(value)}`;
  const byName = new Terms(bind);
  const looked = new Terms(bind);
  const passes = new Terms(bind);
  const { id, referenceId, state } = filter;
  const [order, behind] = first === "oldest" ? ["ASC", ">"] : ["DESC", "<"];
  const isNamed = id !== undefined || referenceId !== undefined;
  const isByState = !isNamed && state !== "finished" && state !== "any";
  if (id !== undefined) byName.add(named(schema, "l.id"), id, id);
  else if (referenceId !== undefined) byName.add(named(schema, "l.reference_id"), referenceId, referenceId);
  // The offset keeps the server from walking through all events in their order until enough of them have the name.
  const labels = isNamed
    ? `(SELECT l.* FROM ${schema}.labels l WHERE ${byName} OFFSET 0)`
    : `${schema}.labels`;
  // Both tables have this column. The index of the table that leads the query is used.
  const at = isByState ? "one" : "l";
  looked.add(`${at}.accepted_at >= to_timestamp(?::float8 / 1000)`, filter.since);
  looked.add(`${at}.accepted_at < to_timestamp(?::float8 / 1000)`, filter.until);
  looked.add(
    `(${at}.accepted_at, ${at}.event_id) ${behind} (to_timestamp(?::float8 / 1000), ?)`,
    cursor?.acceptedAt,
    cursor?.eventId,
  );
  if (id !== undefined) passes.add(named(schema, "l.reference_id"), referenceId, referenceId);
  if (state === undefined) passes.add("u.state IS NOT NULL");
  passes.add("coalesce(u.state, 'finished') = ?", state === "any" ? undefined : state);
  passes.add("l.flow = ?", filter.flow);
  passes.add("l.tenant = ?", filter.tenant);
  passes.add("l.event = ?", filter.event);
  passes.add("u.reason = ?", filter.reason);
  const atMost = Math.max(limit, LOOKED_AT);
  const inOrder = (table: string): string =>
    `ORDER BY ${table}.accepted_at ${order}, ${table}.event_id ${order}`;
  // Takes the first events of each state by the index, and then the first of all these.
  const states = (state === undefined ? UNFINISHED : [state]).map((one) => `'${one}'`).join(", ");
  const ofStates = `SELECT one.* FROM unnest(ARRAY[${states}]) AS wanted (state) CROSS JOIN LATERAL (
      SELECT one.* FROM ${schema}.unfinished one WHERE one.state = wanted.state AND ${looked}
      ${inOrder("one")} LIMIT ${atMost}
    ) one ${inOrder("one")} LIMIT ${atMost}`;
  const unfinished = `${schema}.unfinished u`;
  const ofLabel = "u.record = l.record AND u.event_id = l.event_id";
  const labelled = (most: number): string =>
    `(SELECT l.* FROM ${labels} l WHERE ${looked} ${inOrder("l")} LIMIT ${most}) l`;
  // Unfinished events are left out, except the last, after which the next page begins.
  const ofFinished = `(
      SELECT l.* FROM (SELECT l.*, row_number() OVER () AS n FROM ${labelled(PASSED_OVER)}) l
      WHERE l.n = ${PASSED_OVER} OR NOT EXISTS (SELECT FROM ${unfinished} WHERE ${ofLabel})
      ${inOrder("l")} LIMIT ${atMost}
    ) l`;
  const isOfFinished = !isNamed && state === "finished";
  const found = isByState
    ? `(${ofStates}) u JOIN ${schema}.labels l ON ${ofLabel}`
    : `${isOfFinished ? ofFinished : labelled(atMost)} LEFT JOIN ${unfinished} ON ${ofLabel}`;
  const rowNumber = isOfFinished ? "l.n" : "NULL";
  const text = `
    SELECT ${SUMMARY}, ${rowNumber} AS n, r.version, r.text FROM ${found}
    LEFT JOIN ${schema}.records r ON r.row_id = l.record AND ${OF_RECORD} AND ${passes} AND ${UNEXPIRED}
    ${inOrder("l")}`;
  // It has no name, because it differs for each filter. A stored plan would not be used again.
  const rows = await run({ name: "", text }, values);
  return pageOf(rows, limit, rows.length === atMost || Number(rows.at(-1)?.n) === PASSED_OVER);
}
