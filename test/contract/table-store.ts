import type { PGlite } from "@electric-sql/pglite";
import type { HeldReason } from "@payhooks/core";
import {
  createInbox,
  decodeRecord,
  type EventState,
  encodeRecord,
  type Inbox,
  type RecordStore,
  type Swap,
  type SwapResult,
  type VersionedRecord,
} from "@payhooks/core/inbox";

/** One row is one record, with its index beside it: a statement writes both or nothing. */
const tablesIn = (schema: string): string => `
  CREATE SCHEMA IF NOT EXISTS ${schema};
  CREATE TABLE IF NOT EXISTS ${schema}.records (
    key        text PRIMARY KEY,
    version    text NOT NULL,
    record     text NOT NULL,
    lane       text NOT NULL,   -- where it waits: usual or patient
    look_at    float8,          -- when it is due, or comes out of hiding
    expires_at float8,
    events     jsonb NOT NULL   -- what its events are listed and counted by
  );
  CREATE INDEX IF NOT EXISTS records_by_look_at ON ${schema}.records (lane, look_at);
  CREATE TABLE IF NOT EXISTS ${schema}.store (one int PRIMARY KEY, dataset_id text NOT NULL)`;

const SET = "version = $2, record = $3, look_at = $4, expires_at = $5, events = $6, lane = $7";

interface Row {
  readonly version: string;
  readonly record: string;
}

const versioned = ({ version, record }: Row): VersionedRecord => ({ version, record: decodeRecord(record) });

/** The meaning of an error for its write. Any other error leaves it unknown: the write may have been made. */
function afterError(cause: unknown): SwapResult {
  const { code } = cause as { readonly code?: unknown };
  // SQLSTATE class 22: the database does not take this data, now or later.
  const isRefused = typeof code === "string" && code.startsWith("22");
  return { kind: isRefused ? "refused" : "unknown", cause };
}

/** The records' place, and the clock of the data in milliseconds since the epoch. */
export interface TableStoreOptions {
  readonly schema?: string;
  readonly now?: () => number;
}

/** Records in a table of PGlite. */
export function tableStore(
  database: PGlite,
  { schema = "payhooks", now = Date.now }: TableStoreOptions = {},
): RecordStore {
  const [records, store] = [`${schema}.records`, `${schema}.store`];
  let datasetId = "";
  const query = async <T>(sql: string, values: readonly unknown[] = []): Promise<readonly T[]> =>
    (await database.query<T>(sql, [...values])).rows;

  async function read(keys: readonly string[]): Promise<readonly (VersionedRecord | null)[]> {
    const sql = `SELECT * FROM ${records} WHERE key = ANY ($1) AND (expires_at > $2) IS NOT FALSE`;
    const rows = await query<Row & { readonly key: string }>(sql, [keys, now()]);
    const found = new Map(rows.map((row) => [row.key, versioned(row)]));
    return keys.map((key) => found.get(key) ?? null);
  }

  async function write({ key, expected, version, record, index, at }: Swap): Promise<SwapResult> {
    const conflict = async (): Promise<SwapResult> => {
      const [current = null] = await read([key]);
      return { kind: "conflict", current };
    };
    const time = now();
    if (at > time || at < time - 5_000) return conflict();
    const { dueAt, expiresAt, events, lane } = index;
    const text = encodeRecord(record);
    const values = [key, version, text, dueAt, expiresAt, JSON.stringify(events), lane, time];
    const insert = `
      INSERT INTO ${records} AS old (key, version, record, look_at, expires_at, events, lane)
      VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (key) DO UPDATE SET ${SET} WHERE old.expires_at <= $8`;
    const update = `
      UPDATE ${records} SET ${SET} WHERE key = $1 AND version = $9 AND (expires_at > $8) IS NOT FALSE`;
    const { affectedRows } =
      expected === null
        ? await database.query(insert, values)
        : await database.query(update, [...values, expected]);
    return affectedRows === 1 ? { kind: "written" } : conflict();
  }

  return {
    durability: "process",
    get datasetId() {
      return datasetId;
    },
    async open() {
      await database.exec(tablesIn(schema));
      const sql = `INSERT INTO ${store} (one, dataset_id) VALUES (1, $1) ON CONFLICT (one) DO NOTHING`;
      await query(sql, [crypto.randomUUID()]);
      const [row] = await query<{ readonly dataset_id: string }>(`SELECT dataset_id FROM ${store}`);
      datasetId = row?.dataset_id ?? "";
    },
    read,
    swap: (writes) => Promise.all(writes.map((one) => write(one).catch(afterError))),
    async takeDue(limit, hideMs) {
      const time = now();
      const take = `
        WITH due AS (
          SELECT key, look_at FROM ${records} WHERE lane = $4 AND look_at <= $1
          ORDER BY look_at LIMIT $2 FOR UPDATE SKIP LOCKED
        )
        UPDATE ${records} AS taken SET look_at = $1 + $3 FROM due WHERE taken.key = due.key
        RETURNING taken.key, version, record, due.look_at`;
      type Taken = Row & { readonly key: string; readonly look_at: number };
      const taken: Taken[] = [];
      for (const lane of ["usual", "patient"] as const) {
        if (limit[lane] > 0) taken.push(...(await query<Taken>(take, [time, limit[lane], hideMs, lane])));
      }
      const rest = `
        SELECT count(*) FILTER (WHERE look_at <= $1 AND lane = 'usual')::int AS usual,
               count(*) FILTER (WHERE look_at <= $1 AND lane = 'patient')::int AS patient,
               min(look_at) FILTER (WHERE look_at > $1) AS next
        FROM ${records}`;
      type Rest = { readonly usual: number; readonly patient: number; readonly next: number | null };
      const [row] = await query<Rest>(rest, [time]);
      return {
        records: taken
          .toSorted((a, b) => a.look_at - b.look_at)
          .map((one) => ({ key: one.key, ...versioned(one) })),
        left: { usual: row?.usual ?? 0, patient: row?.patient ?? 0 },
        nextDueAt: row?.next ?? null,
      };
    },
    now,
    async list({ since = 0, until = Number.MAX_SAFE_INTEGER, ...filter }, cursor, limit, first = "oldest") {
      const { id = null, referenceId = null, state, ...others } = filter;
      const labels = state === "any" ? others : { ...others, state };
      const [order, isBehind] = first === "oldest" ? ["ASC", ">"] : ["DESC", "<"];
      const list = `
        SELECT event ->> 'eventId' AS id, (event ->> 'acceptedAt')::float8 AS accepted_at, version, record
        FROM ${records}, jsonb_array_elements(events) AS event
        WHERE event @> $1 AND (event ->> 'state' <> 'finished' OR $10)
          AND (expires_at IS NULL OR expires_at > $2)
          AND ($3::text IS NULL OR event ->> 'id' = $3 OR event -> 'foundBy' ? $3)
          AND ($4::text IS NULL OR event ->> 'referenceId' = $4 OR event -> 'foundBy' ? $4)
          AND (event ->> 'acceptedAt')::float8 >= $5 AND (event ->> 'acceptedAt')::float8 < $6
          AND ($7::float8 IS NULL OR ((event ->> 'acceptedAt')::float8, event ->> 'eventId') ${isBehind} ($7, $8))
        ORDER BY accepted_at ${order}, id ${order} LIMIT $9`;
      const behind = [cursor?.acceptedAt ?? null, cursor?.eventId ?? null];
      const values = [
        JSON.stringify(labels),
        now(),
        id,
        referenceId,
        since,
        until,
        ...behind,
        limit + 1,
        state === "finished" || state === "any",
      ];
      const rows = await query<Row & { readonly id: string; readonly accepted_at: number }>(list, values);
      const events = rows.map((row) => ({
        eventId: row.id,
        acceptedAt: row.accepted_at,
        versioned: versioned(row),
      }));
      const page = events.slice(0, limit);
      return { events: page, next: events.length > limit ? (page.at(-1) ?? null) : null };
    },
    async counts() {
      const sql = `
        SELECT event ->> 'state' AS state, event ->> 'reason' AS reason, count(*)::int AS count
        FROM ${records}, jsonb_array_elements(events) AS event GROUP BY 1, 2`;
      const groups = await query<{ state: EventState; reason: HeldReason | null; count: number }>(sql);
      const countOf = (state: EventState): number =>
        groups.filter((group) => group.state === state).reduce((sum, { count }) => sum + count, 0);
      const heldBy = Object.fromEntries(
        groups.flatMap(({ reason, count }) => (reason === null ? [] : [[reason, count]])),
      );
      const oldest = `SELECT min(look_at) AS at FROM ${records} WHERE look_at <= $1`;
      const [row] = await query<{ readonly at: number | null }>(oldest, [now()]);
      const [waiting, retrying, running, held] = [
        countOf("waiting"),
        countOf("retrying"),
        countOf("running"),
        countOf("held"),
      ];
      return { waiting, retrying, running, held, heldBy, oldestDueAt: row?.at ?? null };
    },
    async prune(before) {
      const some = `SELECT key FROM ${records} WHERE expires_at <= $1 LIMIT 500`;
      const { affectedRows } = await database.query(`DELETE FROM ${records} WHERE key IN (${some})`, [
        before,
      ]);
      return affectedRows === 500;
    },
    // The database was given, and may be shared: whoever made it closes it.
    close: async () => {},
  };
}

/** The inbox for `createReceiver`. */
export function tableInbox(database: PGlite): Inbox {
  return createInbox(tableStore(database), { leaseMs: 30_000, pollMs: 1_000 });
}
