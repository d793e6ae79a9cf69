import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { ListCursor, Listed, ListOrder } from "../inbox/contract/store.ts";
import { type ListedRow, LOOKED_AT, pageOf } from "../sql/event-page.ts";
import { Terms } from "../sql/terms.ts";
import type { SqliteDatabase } from "./handle.ts";

const LABELS = "event_id, state, reason, flow, tenant, id, event, status, reference_id, accepted_at";

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
    .all(...passes.values, ...looked.values, atMost, now) as ListedRow[];
  return pageOf(rows, limit, rows.length === atMost);
}
