import { PayhooksError } from "../protocol/errors.ts";
import type { Statement } from "./client.ts";

/** The version of the tables that {@link migrationSql} makes. */
export const SCHEMA_VERSION = 7;

/** Names that need no escapes in SQL. */
const PLAIN_NAME_PATTERN = /^[a-z_][a-z0-9_]{0,39}$/;

/** The schema as a statement names it: in quotes, because plain words such as `order` have a meaning in SQL. */
export function quoteSchema(schema: string): string {
  return `"${schema}"`;
}

/** Throws `ERR_OPTION_INVALID` for a name that would need escapes, or that PostgreSQL keeps for itself. */
export function checkSchemaName(schema: string): void {
  if (PLAIN_NAME_PATTERN.test(schema) && !schema.startsWith("pg_")) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "The schema of postgresInbox is not a plain name.", {
    fix: "Use at most 40 of a to z, 0 to 9 and _, not beginning with a digit or with pg_.",
  });
}

/** The tables of a schema, in the order in which {@link inspectSchema} asks for them. */
const TABLES = ["records", "labels", "unfinished", "readings", "notes", "meta"] as const;

/** The row of `meta`, which is made again if it was deleted. */
const fillMetaSql = (schema: string): string =>
  `INSERT INTO ${quoteSchema(schema)}.meta VALUES (${SCHEMA_VERSION}, gen_random_uuid()::text) ON CONFLICT DO NOTHING`;

/**
 * Makes what is missing of the tables. It is one statement, so that it is done completely or not at all, even if a pooler
 * gives each statement to another session. Processes that start at the same time wait for one another. Tables of another
 * version are left as they are.
 *
 * A record is `taken` while a run has a lease on it, or while a poll has hidden it for a process; `due_at` is then the
 * time when that ends. Such records have an index of their own: see `taken-records.ts`.
 *
 * Large rows are written once and deleted once: `labels` is never updated. Rows that change are small, or are in `records`,
 * where most events write their row twice. `readings` has the texts that a held event with several readings is found by.
 */
export function migrationSql(schema: string): string {
  const tables = quoteSchema(schema);
  return `DO $payhooks$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('payhooks'), hashtext('${schema}'));
  -- Asks the catalogue, since the session's own memory of names may be older than the wait for the lock.
  IF EXISTS (
    SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = '${schema}' AND c.relname = 'meta'
  ) THEN
    IF EXISTS (SELECT FROM ${tables}.meta WHERE version <> ${SCHEMA_VERSION}) THEN
      RETURN;
    END IF;
  ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '${schema}') THEN
    CREATE SCHEMA ${tables};
  END IF;
  CREATE TABLE IF NOT EXISTS ${tables}.records (
    row_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL UNIQUE,
    version text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    taken boolean NOT NULL DEFAULT FALSE,
    due_at bigint,
    expires_at bigint,
    text text NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
  CREATE INDEX IF NOT EXISTS records_by_due ON ${tables}.records (lane, due_at) WHERE due_at IS NOT NULL AND NOT taken;
  CREATE INDEX IF NOT EXISTS records_by_end ON ${tables}.records (lane, due_at) WHERE due_at IS NOT NULL AND taken;
  CREATE INDEX IF NOT EXISTS records_by_expiry ON ${tables}.records (expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE IF NOT EXISTS ${tables}.labels (
    record bigint NOT NULL,
    accepted_at timestamptz NOT NULL,
    flow text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    reference_id text COLLATE "C",
    event_id text COLLATE "C" NOT NULL
  );
  CREATE INDEX IF NOT EXISTS labels_by_record ON ${tables}.labels (record);
  CREATE INDEX IF NOT EXISTS labels_by_time ON ${tables}.labels (accepted_at);
  CREATE INDEX IF NOT EXISTS labels_by_id ON ${tables}.labels (id);
  CREATE INDEX IF NOT EXISTS labels_by_reference ON ${tables}.labels (reference_id) WHERE reference_id IS NOT NULL;
  CREATE TABLE IF NOT EXISTS ${tables}.unfinished (
    record bigint NOT NULL,
    accepted_at timestamptz NOT NULL,
    state text COLLATE "C" NOT NULL,
    reason text COLLATE "C",
    event_id text COLLATE "C" NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
  CREATE INDEX IF NOT EXISTS unfinished_by_record ON ${tables}.unfinished (record);
  CREATE INDEX IF NOT EXISTS unfinished_by_state ON ${tables}.unfinished (state, accepted_at);
  CREATE TABLE IF NOT EXISTS ${tables}.readings (record bigint NOT NULL, text text COLLATE "C" NOT NULL);
  CREATE INDEX IF NOT EXISTS readings_by_text ON ${tables}.readings (text);
  CREATE INDEX IF NOT EXISTS readings_by_record ON ${tables}.readings (record);
  CREATE OR REPLACE VIEW ${tables}.events AS
    SELECT labels.reference_id, labels.id, labels.flow, labels.tenant, labels.event, labels.status,
      coalesce(unfinished.state, 'finished') AS state, unfinished.reason, labels.accepted_at, labels.event_id, labels.record
    FROM ${tables}.labels LEFT JOIN ${tables}.unfinished
      ON unfinished.record = labels.record AND unfinished.event_id = labels.event_id;
  CREATE TABLE IF NOT EXISTS ${tables}.notes (name text COLLATE "C" PRIMARY KEY, text text NOT NULL);
  CREATE TABLE IF NOT EXISTS ${tables}.meta (version integer NOT NULL, dataset_id text NOT NULL);
  CREATE UNIQUE INDEX IF NOT EXISTS meta_has_one_row ON ${tables}.meta ((true));
  -- Rows that belong to records of an earlier table must not be taken for those of new records.
  PERFORM setval(pg_get_serial_sequence('${tables}.records', 'row_id'), (SELECT max(record) FROM ${tables}.labels))
    WHERE NOT EXISTS (SELECT FROM ${tables}.records) AND EXISTS (SELECT FROM ${tables}.labels);
  ${fillMetaSql(schema)};
END
$payhooks$`;
}

/** Makes the row of `meta`, for a role that may not make tables. */
export function insertMetaRow(schema: string): Statement {
  return { name: "", text: fillMetaSql(schema) };
}

/**
 * Reads the version and the id of the data set, which tables there are, and how safely this session commits. A table that was
 * dropped and made again has another number. There is no row if `meta` was emptied.
 */
export function inspectSchema(schema: string): Statement {
  const numbers = TABLES.map((table) => `to_regclass('${quoteSchema(schema)}.${table}')::oid`).join(", ");
  return {
    name: `payhooks_${schema}_look`,
    text: `SELECT version, dataset_id, array_to_string(ARRAY[${numbers}], ' ', '-') AS tables,
      current_setting('synchronous_commit') AS synchronous_commit,
      current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes
      FROM ${quoteSchema(schema)}.meta`,
  };
}

/** True if all tables exist. */
export function hasAllTables(tables: string): boolean {
  return !tables.includes("-");
}

/**
 * Counts known records that are gone, or can no longer be found by the keys with which they were stored. `$1` to `$4`: their
 * keys, their versions, and 1 if they have labels and unfinished events. Each step is a single row of an index, whatever the
 * server believes about the size of its tables.
 */
export function countMissingRecords(schema: string): Statement {
  const hasRow = (table: string): string =>
    `(SELECT 1 FROM ${quoteSchema(schema)}.${table} one WHERE one.record = stored.row_id LIMIT 1) IS NOT NULL`;
  return {
    name: `payhooks_${schema}_missing`,
    text: `SELECT count(*)::float8 AS n
      FROM unnest($1::text[], $2::text[], $3::int[], $4::int[]) AS known (key, version, has_labels, is_open)
      LEFT JOIN LATERAL (
        SELECT row_id, version FROM ${quoteSchema(schema)}.records r WHERE r.key = known.key LIMIT 1
      ) stored ON TRUE
      WHERE stored.row_id IS NULL OR (stored.version = known.version
        AND ((has_labels = 1 AND NOT ${hasRow("labels")}) OR (is_open = 1 AND NOT ${hasRow("unfinished")})))`,
  };
}

/** The error for tables of another version. */
export function wrongVersionError(schema: string, version: number): PayhooksError {
  return new PayhooksError(
    "ERR_POSTGRES_UNSUITABLE",
    `The schema ${schema} of postgresInbox has version ${version}, and this package knows version ${SCHEMA_VERSION}.`,
    {
      fix:
        version > SCHEMA_VERSION
          ? "Update @payhooks/core."
          : "A version from before the first release made it. Let that version finish the events that wait in it, then drop the schema.",
    },
  );
}

/** The error for tables that are missing and are not to be made, or cannot be. */
export function tablesMissingError(schema: string, reason: string, cause?: unknown): PayhooksError {
  return new PayhooksError(
    "ERR_POSTGRES_UNSUITABLE",
    `The schema ${schema} of postgresInbox has no tables, ${reason}.`,
    {
      fix: `Let a role that may create schemas run postgresMigration("${schema}") of @payhooks/core/postgres, then: GRANT USAGE ON SCHEMA ${quoteSchema(schema)} TO your_role; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${quoteSchema(schema)} TO your_role;`,
      cause,
    },
  );
}
