import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { ListCursor, Listed, ListedEvent, ListOrder } from "../inbox/contract/store.ts";
import { decodeRecord } from "../inbox/record/codec.ts";
import type { EventSummary } from "../inbox/record/index-of.ts";
import type { SqliteDatabase } from "./handle.ts";

/** How many events one page looks at, even if few of them match the filter. */
const LOOKED_AT = 500;

interface EventRow extends Omit<EventSummary, "eventId" | "referenceId" | "acceptedAt"> {
  readonly event_id: string;
  readonly reference_id: string | null;
  readonly accepted_at: number;
  /** Null if the event does not match the filter, or its record has expired. */
  readonly version: string | null;
  readonly text: string | null;
}

const LABELS = "event_id, state, reason, flow, tenant, id, event, status, reference_id, accepted_at";

/** Terms of a query, joined by AND, and their bound values. */
class Terms {
  readonly #terms: string[] = ["TRUE"];
  readonly values: (string | number)[] = [];

  /** Adds a term, unless a value is undefined. */
  add(term: string, ...values: readonly (string | number | undefined)[]): void {
    const given = values.filter((value) => value !== undefined);
    if (given.length < values.length) return;
    this.#terms.push(term);
    this.values.push(...given);
  }

  toString(): string {
    return this.#terms.join(" AND ");
  }
}

/** Matches events with this id or reference, or with a reading that has it. There is an index for either. */
const named = (column: string): string =>
  `(${column} = ? OR record IN (SELECT record FROM readings WHERE text = ?))`;

/**
 * A page of events. The conditions that an index can serve choose a bounded number of events. The other conditions are then
 * applied to these, so that no filter makes a call long.
 */
export function listEvents(
  database: SqliteDatabase,
  filter: EventFilter,
  cursor: ListCursor | null,
  limit: number,
  first: ListOrder,
  now: number,
): Listed {
  const looked = new Terms();
  const passes = new Terms();
  const { id, referenceId, state } = filter;
  const [order, behind] = first === "oldest" ? ["ASC", ">"] : ["DESC", "<"];
  if (id !== undefined) looked.add(named("id"), id, id);
  else if (referenceId !== undefined) looked.add(named("reference_id"), referenceId, referenceId);
  // Worded like the condition of the partial index of unfinished events, so that SQLite uses it.
  else if (state === undefined) looked.add("state <> 'finished'");
  else if (state === "finished") looked.add("state = 'finished'");
  else if (state === "any") looked.add("true");
  else looked.add("state <> 'finished' AND state = ?", state);
  looked.add("accepted_at >= ?", filter.since);
  looked.add("accepted_at < ?", filter.until);
  looked.add(`(accepted_at, event_id) ${behind} (?, ?)`, cursor?.acceptedAt, cursor?.eventId);
  if (id !== undefined) passes.add(named("reference_id"), referenceId, referenceId);
  if (state === undefined) passes.add("state <> 'finished'");
  passes.add("state = ?", state === "any" ? undefined : state);
  passes.add("flow = ?", filter.flow);
  passes.add("tenant = ?", filter.tenant);
  passes.add("event = ?", filter.event);
  passes.add("reason = ?", filter.reason);
  const atMost = Math.max(limit, LOOKED_AT);
  const rows = database
    .prepare(
      `SELECT ${LABELS}, version, text
       FROM (
         SELECT ${LABELS}, record, (${passes}) AS passes FROM events
         WHERE ${looked} ORDER BY accepted_at ${order}, event_id ${order} LIMIT ?
       ) LEFT JOIN records ON passes AND row_id = record AND (expires_at IS NULL OR expires_at > ?)
       ORDER BY accepted_at ${order}, event_id ${order}`,
    )
    .all(...passes.values, ...looked.values, atMost, now) as EventRow[];
  return pageOf(rows, limit, rows.length === atMost);
}

function pageOf(rows: readonly EventRow[], limit: number, isMore: boolean): Listed {
  const events: ListedEvent[] = [];
  let last: ListCursor | null = null;
  for (const row of rows) {
    if (events.length === limit) return { events, next: last };
    last = { acceptedAt: row.accepted_at, eventId: row.event_id };
    events.push(...eventOf(row));
  }
  return { events, next: isMore ? last : null };
}

function eventOf(row: EventRow): readonly ListedEvent[] {
  const { event_id: eventId, accepted_at: acceptedAt, reference_id: referenceId, version, text } = row;
  if (version === null || text === null) return [];
  const { state, reason, flow, tenant, id, event, status } = row;
  const summary = { eventId, state, reason, flow, tenant, id, event, status, referenceId, acceptedAt };
  return [{ eventId, acceptedAt, versioned: { version, record: decodeRecord(text) }, summary }];
}
