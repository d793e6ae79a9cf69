import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { ListCursor, ListOrder, ListPage } from "../inbox/contract/store.ts";
import { MAX_SCANNED_EVENTS, pageOf } from "../sql/event-page.ts";
import { Terms } from "../sql/terms.ts";
import type { Row, Statement } from "./client.ts";
import { UNEXPIRED_SQL } from "./statements.ts";

/** A page of events. An index chooses a bounded number of them, and the other conditions are applied to these. */
export async function listEvents(
  prefix: string,
  filter: EventFilter,
  cursor: ListCursor | null,
  limit: number,
  first: ListOrder,
  run: (statement: Statement) => Promise<readonly Row[]>,
): Promise<ListPage> {
  const { id, referenceId, state, since, until } = filter;
  const scanTerms = new Terms();
  const filterTerms = new Terms();
  const [order, afterOperator] = first === "oldest" ? ["ASC", ">"] : ["DESC", "<"];
  const events = `${prefix}_events e`;
  const wantedName = id ?? referenceId;
  // Those that have the name, and those of which a reading has it: there is an index for either.
  const namedEvents = `(
    SELECT record, event_id FROM ${prefix}_events WHERE ${id === undefined ? "reference_id" : "id"} = ?
    UNION SELECT s.record, o.event_id FROM ${prefix}_readings s JOIN ${prefix}_events o ON o.record = s.record WHERE s.text = ?
  ) found JOIN ${events} ON e.record = found.record AND e.event_id = found.event_id`;
  const from = wantedName === undefined ? events : namedEvents;
  const nameValues = wantedName === undefined ? [] : [wantedName, wantedName];
  if (state === undefined) scanTerms.add("e.state IN ('waiting', 'retrying', 'running', 'held')");
  else if (state !== "any") scanTerms.add("e.state = ?", state);
  scanTerms.add("e.accepted_at >= ?", since);
  scanTerms.add("e.accepted_at < ?", until);
  scanTerms.add(`e.accepted_at ${afterOperator}= ?`, cursor?.acceptedAt);
  scanTerms.add(`(e.accepted_at, e.event_id) ${afterOperator} (?, ?)`, cursor?.acceptedAt, cursor?.eventId);
  if (id !== undefined) {
    const reading = `EXISTS (SELECT 1 FROM ${prefix}_readings s WHERE s.record = e.record AND s.text = ?)`;
    filterTerms.add(`(e.reference_id = ? OR ${reading})`, referenceId, referenceId);
  }
  for (const field of ["flow", "tenant", "event", "reason"] as const)
    filterTerms.add(`e.${field} = ?`, filter[field]);
  const maxRows = Math.max(limit, MAX_SCANNED_EVENTS);
  // An event's id begins with the key of its record. After somebody has emptied one table alone, a row's id may be of
  // another record.
  const rows = await run([
    `SELECT p.*, r.version, r.text FROM (
      SELECT e.*, (${filterTerms}) AS passes FROM ${from} WHERE ${scanTerms}
      ORDER BY e.accepted_at ${order}, e.event_id ${order} LIMIT ${maxRows}
    ) p LEFT JOIN ${prefix}_records r ON p.passes AND r.row_id = p.record AND ${UNEXPIRED_SQL}
      AND LEFT(p.event_id, CHAR_LENGTH(r.\`key\`)) = r.\`key\`
    ORDER BY p.accepted_at ${order}, p.event_id ${order}`,
    ...filterTerms.values,
    ...nameValues,
    ...scanTerms.values,
  ]);
  return pageOf(rows, limit, rows.length === maxRows);
}
