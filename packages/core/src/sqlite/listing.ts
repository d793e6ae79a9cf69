import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { ListCursor, ListOrder, ListPage } from "../inbox/contract/store.ts";
import { type ListedRow, MAX_SCANNED_EVENTS, pageOf } from "../sql/event-page.ts";
import { Terms } from "../sql/terms.ts";
import type { SqliteDatabase } from "./handle.ts";

const LABEL_COLUMNS = "event_id, state, reason, flow, tenant, id, event, status, reference_id, accepted_at";

/** Matches events with this id or reference, or with a reading that has it. There is an index for either. */
const nameCondition = (column: string): string =>
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
): ListPage {
  const scanTerms = new Terms();
  const filterTerms = new Terms();
  const { id, referenceId, state } = filter;
  const [order, afterOperator] = first === "oldest" ? ["ASC", ">"] : ["DESC", "<"];
  if (id !== undefined) scanTerms.add(nameCondition("id"), id, id);
  else if (referenceId !== undefined) scanTerms.add(nameCondition("reference_id"), referenceId, referenceId);
  // Worded like the condition of the partial index of unfinished events, so that SQLite uses it.
  else if (state === undefined) scanTerms.add("state <> 'finished'");
  else if (state === "finished") scanTerms.add("state = 'finished'");
  else if (state === "any") scanTerms.add("true");
  else scanTerms.add("state <> 'finished' AND state = ?", state);
  scanTerms.add("accepted_at >= ?", filter.since);
  scanTerms.add("accepted_at < ?", filter.until);
  scanTerms.add(`(accepted_at, event_id) ${afterOperator} (?, ?)`, cursor?.acceptedAt, cursor?.eventId);
  if (id !== undefined) filterTerms.add(nameCondition("reference_id"), referenceId, referenceId);
  if (state === undefined) filterTerms.add("state <> 'finished'");
  filterTerms.add("state = ?", state === "any" ? undefined : state);
  filterTerms.add("flow = ?", filter.flow);
  filterTerms.add("tenant = ?", filter.tenant);
  filterTerms.add("event = ?", filter.event);
  filterTerms.add("reason = ?", filter.reason);
  const maxRows = Math.max(limit, MAX_SCANNED_EVENTS);
  const rows = database
    .prepare(
      `SELECT ${LABEL_COLUMNS}, version, text
       FROM (
         SELECT ${LABEL_COLUMNS}, record, (${filterTerms}) AS passes FROM events
         WHERE ${scanTerms} ORDER BY accepted_at ${order}, event_id ${order} LIMIT ?
       ) LEFT JOIN records ON passes AND row_id = record AND (expires_at IS NULL OR expires_at > ?)
       ORDER BY accepted_at ${order}, event_id ${order}`,
    )
    .all(...filterTerms.values, ...scanTerms.values, maxRows, now) as ListedRow[];
  return pageOf(rows, limit, rows.length === maxRows);
}
