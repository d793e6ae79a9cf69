import type { EventFilter } from "../inbox/contract/event-query.ts";
import type { ListCursor, Listed, ListOrder } from "../inbox/contract/store.ts";
import { LOOKED_AT, pageOf } from "../sql/event-page.ts";
import { Terms } from "../sql/terms.ts";
import type { Row, Statement } from "./client.ts";
import { UNEXPIRED } from "./statements.ts";

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
  // An event's id begins with the key of its record. After somebody has emptied one table alone, a row's id may be of
  // another record.
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
