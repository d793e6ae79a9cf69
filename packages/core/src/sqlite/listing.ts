import type { EventFilter } from "../inbox/inbox.ts";
import { decodeRecord } from "../inbox/record/codec.ts";
import type { ListCursor, Listed } from "../inbox/store.ts";
import type { SqliteDatabase } from "./driver.ts";

/** Events that are looked at for one page, however few of them the filter lets pass. */
const LOOKED_AT = 500;

interface ListRow {
  readonly event_id: string;
  readonly accepted_at: number;
  /** Null where the filter does not let it pass, or its record has expired. */
  readonly version: string | null;
  readonly text: string | null;
}

/** Terms of a query, joined by AND, and what is bound in them. */
class Terms {
  readonly #terms: string[] = ["TRUE"];
  readonly values: (string | number)[] = [];

  /** Adds a term, unless the value is left out. */
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

/**
 * A page of events. What an index serves says which are looked at, a bounded number of them; each of these is then let
 * pass or not, so that no filter makes a call long.
 */
export function listEvents(
  database: SqliteDatabase,
  filter: EventFilter,
  cursor: ListCursor | null,
  limit: number,
  now: number,
): Listed {
  const looked = new Terms();
  const passes = new Terms();
  const { id, referenceId, state } = filter;
  if (id !== undefined) looked.add("id = ?", id);
  else if (referenceId !== undefined) looked.add("reference_id = ?", referenceId);
  // In these words SQLite sees that the index of unfinished events will do.
  else if (state !== undefined && state !== "done") looked.add("state <> 'done' AND state = ?", state);
  looked.add("accepted_at >= ?", filter.since);
  looked.add("accepted_at < ?", filter.until);
  looked.add("(accepted_at, event_id) > (?, ?)", cursor?.acceptedAt, cursor?.eventId);
  passes.add("reference_id = ?", referenceId);
  passes.add("state = ?", state);
  passes.add("flow = ?", filter.flow);
  passes.add("tenant = ?", filter.tenant);
  passes.add("event = ?", filter.event);
  passes.add("reason = ?", filter.reason);
  const atMost = Math.max(limit, LOOKED_AT);
  const rows = database
    .prepare(
      `SELECT event_id, accepted_at, version, text
       FROM (
         SELECT event_id, accepted_at, record, (${passes}) AS passes FROM events
         WHERE ${looked} ORDER BY accepted_at, event_id LIMIT ?
       ) LEFT JOIN records ON passes AND place = record AND (expires_at IS NULL OR expires_at > ?)
       ORDER BY accepted_at, event_id`,
    )
    .all(...passes.values, ...looked.values, atMost, now) as ListRow[];
  return pageOf(rows, limit, rows.length === atMost);
}

function pageOf(rows: readonly ListRow[], limit: number, isMore: boolean): Listed {
  const events: Listed["events"][number][] = [];
  let last: ListCursor | null = null;
  for (const { event_id: eventId, accepted_at: acceptedAt, version, text } of rows) {
    if (events.length === limit) return { events, next: last };
    last = { acceptedAt, eventId };
    if (version === null || text === null) continue;
    events.push({ eventId, acceptedAt, versioned: { version, record: decodeRecord(text) } });
  }
  return { events, next: isMore ? last : null };
}
