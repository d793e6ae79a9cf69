import type { ListCursor, ListedEvent, ListPage } from "../inbox/contract/store.ts";
import { decodeRecord } from "../inbox/record/codec.ts";
import type { EventSummary } from "../inbox/record/index-of.ts";

/** How many events one page looks at, even if few of them match the filter. */
export const MAX_SCANNED_EVENTS = 500;

/**
 * A row of a list: the facts of an event, as columns such as `event_id`, and `version` and `text` of its record. These
 * two are null if the event does not match the filter, or its record is gone or has expired.
 */
export type ListedRow = Readonly<Record<string, unknown>>;

/** A page of at most `limit` events. `hasMore`: the query may have left out rows behind the last one. */
export function pageOf(rows: readonly ListedRow[], limit: number, hasMore: boolean): ListPage {
  const events: ListedEvent[] = [];
  let lastCursor: ListCursor | null = null;
  for (const row of rows) {
    if (events.length === limit) return { events, next: lastCursor };
    lastCursor = { acceptedAt: Number(row.accepted_at), eventId: String(row.event_id) };
    if (row.version !== null && row.text !== null) events.push(eventOf(row, lastCursor));
  }
  return { events, next: hasMore ? lastCursor : null };
}

function eventOf(row: ListedRow, { eventId, acceptedAt }: ListCursor): ListedEvent {
  const { state, reason, flow, tenant, id, event, status, reference_id: referenceId } = row;
  const summary = { eventId, state, reason, flow, tenant, id, event, status, referenceId, acceptedAt };
  const versioned = { version: String(row.version), record: decodeRecord(String(row.text)) };
  return { eventId, acceptedAt, versioned, summary: summary as EventSummary };
}
