import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { ListCursor, Listed, ListedEvent, ListOrder } from "../inbox/contract/store.ts";
import { decodeRecord } from "../inbox/record/codec.ts";
import type { EventSummary } from "../inbox/record/index-of.ts";
import type { Row, Statement, Value } from "./client.ts";
import { UNEXPIRED } from "./statements.ts";

/** How many events one page looks at, even if few of them match the filter. */
const LOOKED_AT = 500;

/** Terms of a query, joined by AND, and their values. */
class Terms {
  readonly #terms: string[] = ["TRUE"];
  readonly values: Value[] = [];

  /** Adds a term, unless a value is undefined. */
  add(term: string, ...values: readonly (Value | undefined)[]): void {
    const given = values.filter((value) => value !== undefined);
    if (given.length < values.length) return;
    this.#terms.push(term);
    this.values.push(...given);
  }

  toString(): string {
    return this.#terms.join(" AND ");
  }
}

/** A page of events. An index chooses a bounded number of them, and the other conditions are applied to these. */
export async function listEvents(
  prefix: string,
  filter: EventFilter,
  cursor: ListCursor | null,
  limit: number,
  first: ListOrder,
  ask: (statement: Statement) => Promise<readonly Row[]>,
): Promise<Listed> {
  const { id, referenceId, state, since, until } = filter;
  const looked = new Terms();
  const passes = new Terms();
  const [order, behind] = first === "oldest" ? ["ASC", ">"] : ["DESC", "<"];
  const events = `${prefix}_events e`;
  const name = id ?? referenceId;
  // Those that have the name, and those of which a reading has it: there is an index for either.
  const found = `(
    SELECT record, event_id FROM ${prefix}_events WHERE ${id === undefined ? "reference_id" : "id"} = ?
    UNION SELECT s.record, o.event_id FROM ${prefix}_readings s JOIN ${prefix}_events o ON o.record = s.record WHERE s.text = ?
  ) found JOIN ${events} ON e.record = found.record AND e.event_id = found.event_id`;
  const from = name === undefined ? events : found;
  const names = name === undefined ? [] : [name, name];
  if (state === undefined) looked.add("e.state IN ('waiting', 'retrying', 'running', 'held')");
  else if (state !== "any") looked.add("e.state = ?", state);
  looked.add("e.accepted_at >= ?", since);
  looked.add("e.accepted_at < ?", until);
  looked.add(`e.accepted_at ${behind}= ?`, cursor?.acceptedAt);
  looked.add(`(e.accepted_at, e.event_id) ${behind} (?, ?)`, cursor?.acceptedAt, cursor?.eventId);
  if (id !== undefined) {
    const reading = `EXISTS (SELECT 1 FROM ${prefix}_readings s WHERE s.record = e.record AND s.text = ?)`;
    passes.add(`(e.reference_id = ? OR ${reading})`, referenceId, referenceId);
  }
  for (const one of ["flow", "tenant", "event", "reason"] as const) passes.add(`e.${one} = ?`, filter[one]);
  const atMost = Math.max(limit, LOOKED_AT);
  // An event's id begins with the key of its record. After somebody has emptied one table alone, a row's id may be of another record.
  const rows = await ask([
    `SELECT p.*, r.version, r.text FROM (
      SELECT e.*, (${passes}) AS passes FROM ${from} WHERE ${looked}
      ORDER BY e.accepted_at ${order}, e.event_id ${order} LIMIT ${atMost}
    ) p LEFT JOIN ${prefix}_records r ON p.passes AND r.row_id = p.record AND ${UNEXPIRED}
      AND LEFT(p.event_id, CHAR_LENGTH(r.\`key\`)) = r.\`key\`
    ORDER BY p.accepted_at ${order}, p.event_id ${order}`,
    ...passes.values,
    ...names,
    ...looked.values,
  ]);
  return pageOf(rows, limit, rows.length === atMost);
}

function pageOf(rows: readonly Row[], limit: number, isMore: boolean): Listed {
  const events: ListedEvent[] = [];
  let last: ListCursor | null = null;
  for (const row of rows) {
    if (events.length === limit) return { events, next: last };
    last = { acceptedAt: Number(row.accepted_at), eventId: String(row.event_id) };
    if (row.version !== null) events.push(eventOf(row, last));
  }
  return { events, next: isMore ? last : null };
}

function eventOf(row: Row, { eventId, acceptedAt }: ListCursor): ListedEvent {
  const { state, reason, flow, tenant, id, event, status, reference_id: referenceId } = row;
  const summary = { eventId, acceptedAt, state, reason, flow, tenant, id, event, status, referenceId };
  const versioned = { version: String(row.version), record: decodeRecord(String(row.text)) };
  return { eventId, acceptedAt, versioned, summary: summary as EventSummary };
}
