import type { Statement } from "./client.ts";
import { quoted } from "./schema.ts";

/** The server's clock in whole milliseconds, at the time when it received the statement. */
const NOW = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

/** A write whose time is further in the past was computed too long ago, and a due time counts as no earlier. */
export const MAX_AGE_MS = 5_000;

/** How many expired records one step deletes. */
export const PRUNED_AT_ONCE = 200;

/** The statements of a store. Each one is a transaction by itself. */
export interface Statements {
  readonly read: Statement;
  readonly scan: Statement;
  readonly takeDue: Statement;
  readonly lookAtDue: Statement;
  readonly lookAtAll: Statement;
  readonly forget: Statement;
  readonly prune: Statement;
  readonly readNote: Statement;
  readonly writeNote: Statement;
  readonly counts: Statement;
  readonly announce: Statement;
  readonly listen: Statement;
  readonly time: Statement;
}

/** What a swap has to do. A statement without the other parts is planned and run faster. */
export interface SwapParts {
  readonly inserts: boolean;
  readonly updates: boolean;
  /** Events that are new. */
  readonly labels: boolean;
  /** New events with several readings. */
  readonly readings: boolean;
  /** Events that become unfinished. */
  readonly opened: boolean;
  /** Unfinished events that change to another unfinished state. */
  readonly moved: boolean;
  /** Events that end. */
  readonly closed: boolean;
  /** Events that are no longer in their record. */
  readonly gone: boolean;
}

/**
 * The channel of hints. Any role may notify any channel whose name it knows. So the name contains the identity of the data, which
 * only roles that may read the tables know. It changes with the data.
 */
const CHANNEL = "'payhooks_' || identity";

/** Listens to the channel of the data that is there now, and to no other. Does nothing if there is no data yet. */
export function listenTo(schema: string): string {
  const tables = quoted(schema);
  return `DO $payhooks$
  DECLARE channel text;
  BEGIN
    IF to_regclass('${tables}.meta') IS NOT NULL THEN
      SELECT ${CHANNEL} INTO channel FROM ${tables}.meta;
      IF channel IS NOT NULL AND channel NOT IN (SELECT pg_listening_channels()) THEN
        UNLISTEN *;
        EXECUTE format('LISTEN %I', channel);
      END IF;
    END IF;
  END
  $payhooks$`;
}

/** The statements for the tables of one schema. */
export function statementsFor(schema: string): Statements {
  const tables = quoted(schema);
  const statement = (name: string, text: string): Statement => ({ name: `payhooks_${schema}_${name}`, text });
  const unexpired = `(expires_at IS NULL OR expires_at > ${NOW})`;
  const withoutLabels = (records: string): string => `
    WITH gone AS (${records} RETURNING place),
      labels AS (DELETE FROM ${tables}.labels WHERE record IN (SELECT place FROM gone)),
      readings AS (DELETE FROM ${tables}.readings WHERE record IN (SELECT place FROM gone))
    SELECT ${NOW} AS now, count(*)::float8 AS n FROM gone`;
  return {
    read: statement(
      "read",
      `SELECT ${NOW} AS now, key, version, text
      FROM (SELECT) one LEFT JOIN ${tables}.records ON key = ANY ($1::text[]) AND ${unexpired}`,
    ),
    scan: statement(
      "scan",
      `SELECT place::text AS place, key, version, text, ${unexpired} AS is_there
      FROM ${tables}.records r WHERE r.place > $1::bigint ORDER BY r.place LIMIT $2::int`,
    ),
    takeDue: statement(
      "take_due",
      `WITH due AS MATERIALIZED (
        SELECT place, due_at FROM ${tables}.records WHERE due_at >= $3::bigint AND due_at <= ${NOW}
        ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED
      ), taken AS (
        UPDATE ${tables}.records r SET due_at = ${NOW} + $2::bigint FROM due WHERE r.place = due.place
        RETURNING r.place, r.key, r.version, r.text, due.due_at AS since
      ), others AS (
        SELECT
          (SELECT min(due_at) FROM ${tables}.records WHERE due_at > ${NOW}) AS next,
          (SELECT due_at FROM ${tables}.records WHERE due_at >= $3::bigint AND due_at <= ${NOW}
            AND place <> ALL (ARRAY(SELECT place FROM taken)) ORDER BY due_at LIMIT 1) AS oldest
      )
      SELECT ${NOW} AS now, oldest::float8 AS oldest, CASE WHEN oldest IS NULL THEN 0 ELSE 1 END AS n,
        (CASE WHEN key IS NULL THEN next ELSE least(next, ${NOW} + $2::bigint) END)::float8 AS next, key, version, text
      FROM others LEFT JOIN taken ON TRUE ORDER BY since`,
    ),
    lookAtDue: statement(
      "look_at_due",
      `SELECT ${NOW} AS now,
        (SELECT min(due_at) FROM ${tables}.records WHERE due_at > ${NOW})::float8 AS next,
        (SELECT min(due_at) FROM ${tables}.records WHERE due_at >= $2::bigint AND due_at <= ${NOW})::float8 AS oldest,
        (SELECT count(*) FROM (
          SELECT FROM ${tables}.records WHERE due_at >= $2::bigint AND due_at <= ${NOW} LIMIT $1::int
        ) due)::float8 AS n`,
    ),
    lookAtAll: {
      ...statement(
        "look_at_all",
        `SELECT ${NOW} AS now, (SELECT min(due_at) FROM ${tables}.records WHERE due_at <= ${NOW})::float8 AS oldest`,
      ),
      patienceMs: 15_000,
    },
    forget: statement(
      "forget",
      withoutLabels(`DELETE FROM ${tables}.records WHERE key = ANY ($1::text[]) AND expires_at <= ${NOW}`),
    ),
    prune: statement(
      "prune",
      withoutLabels(`DELETE FROM ${tables}.records WHERE place = ANY (ARRAY(
        SELECT place FROM ${tables}.records WHERE expires_at <= $1::bigint
        ORDER BY expires_at LIMIT ${PRUNED_AT_ONCE} FOR UPDATE SKIP LOCKED))`),
    ),
    readNote: statement("read_note", `SELECT text FROM ${tables}.notes WHERE name = $1`),
    writeNote: statement(
      "write_note",
      `INSERT INTO ${tables}.notes (name, text) VALUES ($1, $2)
      ON CONFLICT (name) DO UPDATE SET text = excluded.text`,
    ),
    counts: statement(
      "counts",
      `SELECT state, reason, count(*)::float8 AS n FROM ${tables}.unfinished GROUP BY state, reason`,
    ),
    announce: statement("announce", `SELECT pg_notify(${CHANNEL}, '') FROM ${tables}.meta`),
    listen: { name: "", text: listenTo(schema) },
    time: statement("time", `SELECT ${NOW} AS now`),
  };
}

/**
 * Restricts a table to the rows of the records that were written. Without it, a server that believes the table to be empty, since
 * it was so when statistics were last made, walks over a whole index of it, with all entries that a snapshot keeps from clean-up.
 */
const ofWritten = (table: string): string => `${table}.record = ANY (ARRAY(SELECT place FROM written))`;

/**
 * Writes records together with their labels, each independently of the others. Returns the keys of the records that were
 * written, and the others as they were when the statement began.
 *
 * A record is written if it still has the expected version, or if there is none and none was expected. If somebody else is
 * writing one of them at the same time, the statement waits for that write. Rows are locked in the order of their keys, so two
 * such statements cannot deadlock.
 */
export function swapStatement(schema: string, parts: SwapParts): Statement {
  const tables = quoted(schema);
  const name = Object.values(parts)
    .map((has) => (has ? "1" : "0"))
    .join("");
  const steps: string[] = [
    `input AS MATERIALIZED (
      SELECT key, expected, version, text, expires_at,
        CASE WHEN due_at IS NULL THEN NULL ELSE greatest(due_at, ${NOW} - ${MAX_AGE_MS}) END AS due_at
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
        AS input (key, expected, version, text, at, due_at, expires_at)
      WHERE at <= ${NOW} AND at >= ${NOW} - ${MAX_AGE_MS}
    )`,
  ];
  const written: string[] = [];
  if (parts.updates) {
    steps.push(
      `known AS MATERIALIZED (
        SELECT r.place, i.* FROM input i JOIN ${tables}.records r ON r.key = i.key AND r.version = i.expected
        WHERE r.expires_at IS NULL OR r.expires_at > ${NOW}
        ORDER BY r.key FOR UPDATE OF r
      )`,
      `updated AS (
        UPDATE ${tables}.records r SET version = k.version, text = k.text, due_at = k.due_at, expires_at = k.expires_at
        FROM known k WHERE r.place = k.place RETURNING r.key, r.place
      )`,
    );
    written.push("SELECT key, place FROM updated");
  }
  if (parts.inserts) {
    steps.push(`inserted AS (
      INSERT INTO ${tables}.records (key, version, text, due_at, expires_at)
      SELECT key, version, text, due_at, expires_at FROM input WHERE expected IS NULL ORDER BY key
      ON CONFLICT (key) DO NOTHING RETURNING key, place
    )`);
    written.push("SELECT key, place FROM inserted");
  }
  steps.push(`written AS MATERIALIZED (${written.join(" UNION ALL ")})`);
  if (parts.labels) {
    steps.push(`labels AS (
      INSERT INTO ${tables}.labels
        (record, accepted_at, flow, tenant, id, event, status, reference_id, event_id)
      SELECT place, to_timestamp(accepted_at / 1000), flow, tenant, id, event, status, reference_id, event_id
      FROM unnest($8::text[], $9::text[], $10::float8[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[])
        AS labels (key, event_id, accepted_at, flow, tenant, id, event, status, reference_id) JOIN written USING (key)
    )`);
  }
  if (parts.readings) {
    steps.push(`readings AS (
      INSERT INTO ${tables}.readings (record, text)
      SELECT place, readings.text FROM unnest($25::text[], $26::text[]) AS readings (key, text) JOIN written USING (key)
    )`);
  }
  // Values are numbered as if every part were present. `renumbered` closes the gaps of parts that are left out.
  const states = `unnest($17::text[], $18::text[], $19::float8[], $20::text[], $21::text[], $22::text[])
    AS change (key, event_id, accepted_at, state, reason, change)`;
  if (parts.opened) {
    steps.push(`opened AS (
      INSERT INTO ${tables}.unfinished (record, event_id, accepted_at, state, reason)
      SELECT place, event_id, to_timestamp(accepted_at / 1000), state, reason
      FROM ${states} JOIN written USING (key) WHERE change = 'opened'
    )`);
  }
  if (parts.moved) {
    steps.push(`moved AS (
      UPDATE ${tables}.unfinished u SET state = change.state, reason = change.reason
      FROM ${states} JOIN written USING (key)
      WHERE change.change = 'moved' AND ${ofWritten("u")} AND u.record = place AND u.event_id = change.event_id
    )`);
  }
  if (parts.closed) {
    steps.push(`closed AS (
      DELETE FROM ${tables}.unfinished u USING ${states} JOIN written USING (key)
      WHERE change.change = 'closed' AND ${ofWritten("u")} AND u.record = place AND u.event_id = change.event_id
    )`);
  }
  if (parts.gone) {
    steps.push(`gone AS (
      DELETE FROM ${tables}.labels l USING unnest($23::text[], $24::text[]) AS gone (key, event_id) JOIN written USING (key)
      WHERE ${ofWritten("l")} AND l.record = place AND l.event_id = gone.event_id
    )`);
  }
  const text = `WITH ${steps.join(", ")}
    SELECT ${NOW} AS now, (SELECT string_agg(key, ',') FROM written) AS keys, r.key, r.version, r.text
    FROM (SELECT) one LEFT JOIN (
      SELECT key, version, text FROM unnest($1::text[]) AS asked (key) JOIN ${tables}.records USING (key)
      WHERE (expires_at IS NULL OR expires_at > ${NOW}) AND NOT EXISTS (SELECT FROM written WHERE written.key = asked.key)
    ) r ON TRUE`;
  return { name: `payhooks_${schema}_swap_${name}`, text: renumbered(text) };
}

/** Numbers the values without gaps, in their order. */
function renumbered(text: string): string {
  const numbers = [...new Set([...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))].toSorted(
    (a, b) => a - b,
  );
  return text.replace(/\$(\d+)/g, (_, number: string) => `$${numbers.indexOf(Number(number)) + 1}`);
}
