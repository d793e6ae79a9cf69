import { MAX_WRITE_AGE_MS } from "../sql/due-bound.ts";
import type { BoundStatement, Value } from "./client.ts";
import { eventChanges, type RecordWrite } from "./event-changes.ts";
import { quoteSchema } from "./schema.ts";
import { NOW_SQL, toWholeMs, UNEXPIRED_SQL } from "./statements.ts";

/**
 * Writes one record together with its labels, with the answer of {@link swapMany}. Every step changes one row, by an
 * index with one value each, so the plan is always the same, whatever the server's statistics say. It is made once for
 * each session.
 *
 * Few writes take several rows of a table. For such a write, the answer is null.
 */
export function swapOne(schema: string, { item, text }: RecordWrite): BoundStatement | null {
  const { addedEvents, removedEvents, stateChanges } = eventChanges(item);
  const [label] = addedEvents;
  const [stateChange] = stateChanges;
  const isSingleEvent = addedEvents.length < 2 && stateChanges.length < 2 && removedEvents.length === 0;
  if (!isSingleEvent || (label !== undefined && label.foundBy.length > 0)) return null;

  const tables = quoteSchema(schema);
  const values: Value[] = [];
  const bind = (value: Value, type = "text"): string => `$${values.push(value)}::${type}`;
  const { key, version, expected, index } = item;
  const [boundKey, at, dueAt] = [
    bind(key),
    bind(Math.ceil(item.at), "bigint"),
    bind(toWholeMs(index.dueAt), "bigint"),
  ];
  const timelyCondition = `${at} <= ${NOW_SQL} AND ${at} >= ${NOW_SQL} - ${MAX_WRITE_AGE_MS}`;
  const recordValues = [
    bind(version),
    bind(text),
    bind(index.lane),
    // A lease that has lapsed keeps nobody from the record.
    `${bind(index.isLeased ? 1 : 0, "bigint")} = 1 AND coalesce(${dueAt} > ${NOW_SQL}, FALSE)`,
    `CASE WHEN ${dueAt} IS NOT NULL THEN greatest(${dueAt}, ${NOW_SQL} - ${MAX_WRITE_AGE_MS}) END`,
    bind(toWholeMs(index.expiresAt), "bigint"),
  ].join(", ");
  const steps = [
    expected === null
      ? `written AS (
          INSERT INTO ${tables}.records (key, version, text, lane, taken, due_at, expires_at)
          SELECT ${boundKey}, ${recordValues} WHERE ${timelyCondition} ON CONFLICT (key) DO NOTHING RETURNING row_id
        )`
      : `written AS (
          UPDATE ${tables}.records SET (version, text, lane, taken, due_at, expires_at) = ROW (${recordValues})
          WHERE key = ${boundKey} AND version = ${bind(expected)} AND ${UNEXPIRED_SQL} AND ${timelyCondition} RETURNING row_id
        )`,
  ];
  if (label !== undefined) {
    const { acceptedAt, flow, tenant, id, event, status, referenceId, eventId } = label;
    const facts = [flow, tenant, id, event, status, referenceId, eventId].map((fact) => bind(fact));
    steps.push(`labels AS (
      INSERT INTO ${tables}.labels (record, accepted_at, flow, tenant, id, event, status, reference_id, event_id)
      SELECT row_id, to_timestamp(${bind(acceptedAt, "float8")} / 1000), ${facts.join(", ")} FROM written
    )`);
  }
  if (stateChange !== undefined) {
    const { labels, change } = stateChange;
    const eventId = bind(labels.eventId);
    const eventCondition = `WHERE record = (SELECT row_id FROM written) AND event_id = ${eventId}`;
    if (change === "opened") {
      steps.push(`opened AS (
        INSERT INTO ${tables}.unfinished (record, event_id, accepted_at, state, reason)
        SELECT row_id, ${eventId}, to_timestamp(${bind(labels.acceptedAt, "float8")} / 1000), ${bind(labels.state)}, ${bind(labels.reason)}
        FROM written
      )`);
    } else if (change === "moved") {
      const set = `state = ${bind(labels.state)}, reason = ${bind(labels.reason)}`;
      steps.push(`moved AS (UPDATE ${tables}.unfinished SET ${set} ${eventCondition})`);
    } else steps.push(`closed AS (DELETE FROM ${tables}.unfinished ${eventCondition})`);
  }
  const kind = `${expected === null ? "new" : "old"}${label === undefined ? "" : "_l"}_${stateChange?.change[0] ?? ""}`;
  return {
    statement: {
      name: `payhooks_${schema}_one_${kind}`,
      text: `WITH ${steps.join(", ")}
        SELECT ${NOW_SQL} AS now, (SELECT ${boundKey} FROM written) AS keys, r.key, r.version, r.text
        FROM (SELECT) one LEFT JOIN LATERAL (
          SELECT key, version, text FROM ${tables}.records
          WHERE NOT EXISTS (SELECT FROM written) AND key = ${boundKey} AND ${UNEXPIRED_SQL}
        ) r ON TRUE`,
    },
    values,
  };
}
