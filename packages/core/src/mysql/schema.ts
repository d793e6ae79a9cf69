import type { SetupWarnings } from "../notices/setup-warnings.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { Connections, Row, Statement } from "./client.ts";
import { isForbidden, isTableMissing } from "./failure.ts";

/** The version of the tables that {@link migrationSql} makes. */
const SCHEMA_VERSION = 3;

/** A server that is new may need longer for its first answer, or for the tables. */
const OPEN_TIMEOUT_MS = 30_000;

/** The tables that events and notes are written to. */
const WRITTEN_TABLES = ["records", "events", "readings", "notes"];

/** Names that need no quotes in SQL. */
const PLAIN_NAME_PATTERN = /^[a-z_][a-z0-9_]{0,39}$/;

/** Throws `ERR_OPTION_INVALID` for a prefix that would need quotes. */
export function checkPrefix(prefix: string): void {
  if (PLAIN_NAME_PATTERN.test(prefix)) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "The prefix of mysqlInbox is not a plain name.", {
    fix: "Use at most 40 of a to z, 0 to 9 and _, not beginning with a digit.",
  });
}

/**
 * The tables. Texts differ if their bytes differ: in case, in accents, and in spaces at the end. MySQL and MariaDB have
 * different names for such a collation, and each reads only its own comment. `row_id` is the order in which records
 * were made: by their keys, which are random, records that are made together would be on different pages.
 */
export function migrationSql(prefix: string): readonly string[] {
  const texts = "CHARACTER SET utf8mb4 COLLATE /*!80017 utf8mb4_0900_bin */ /*M! utf8mb4_nopad_bin */";
  const table = (name: string, columns: string): string =>
    `CREATE TABLE IF NOT EXISTS ${prefix}_${name} (${columns}) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT ${texts}`;
  return [
    table(
      "records",
      `row_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, \`key\` VARCHAR(200) NOT NULL, version VARCHAR(200) NOT NULL,
      lane VARCHAR(20) NOT NULL, due_at BIGINT, expires_at BIGINT, text LONGTEXT NOT NULL,
      UNIQUE KEY by_key (\`key\`), KEY by_due (lane, due_at), KEY by_expiry (expires_at)`,
    ),
    table(
      "events",
      `record BIGINT NOT NULL, event_id VARCHAR(250) NOT NULL, state VARCHAR(20) NOT NULL, reason VARCHAR(50),
      flow VARCHAR(200) NOT NULL, tenant VARCHAR(512) NOT NULL, id VARCHAR(512) NOT NULL, event VARCHAR(512) NOT NULL,
      status VARCHAR(512) NOT NULL, reference_id VARCHAR(512), accepted_at BIGINT NOT NULL,
      PRIMARY KEY (record, event_id), KEY by_state (state, accepted_at, reason), KEY by_time (accepted_at),
      KEY by_id (id), KEY by_reference (reference_id)`,
    ),
    table(
      "readings",
      "record BIGINT NOT NULL, text VARCHAR(512) NOT NULL, PRIMARY KEY (record, text), KEY by_text (text)",
    ),
    table("notes", "name VARCHAR(50) NOT NULL PRIMARY KEY, text LONGTEXT NOT NULL"),
    table("meta", "one INT NOT NULL PRIMARY KEY, version INT NOT NULL, dataset_id VARCHAR(50) NOT NULL"),
    insertMetaSql(prefix),
  ];
}

/** Gives the data set its id, unless it has one. */
function insertMetaSql(prefix: string): string {
  return `INSERT INTO ${prefix}_meta (one, version, dataset_id) VALUES (1, ${SCHEMA_VERSION}, UUID()) ON DUPLICATE KEY UPDATE one = 1`;
}

/** Statements that change nothing, and fail if the user may not do everything that events need. */
function probeStatements(prefix: string): readonly Statement[] {
  return WRITTEN_TABLES.flatMap((table) => {
    const name = `${prefix}_${table}`;
    const [column] = table === "notes" ? ["name"] : table === "records" ? ["row_id"] : ["record"];
    return [
      [`INSERT INTO ${name} SELECT * FROM ${name} WHERE FALSE`],
      [`UPDATE ${name} SET ${column} = ${column} WHERE FALSE`],
      [`DELETE FROM ${name} WHERE FALSE`],
    ] as const;
  });
}

/** Checks the server and the tables, and makes the missing parts of the tables. Returns the id of the data set. */
export async function prepareTables(
  connections: Connections,
  prefix: string,
  shouldMigrate: boolean,
  warnings: SetupWarnings,
): Promise<string> {
  checkServer(await readServerFacts(connections), warnings);
  try {
    const [[row]] = (await connections.run([readMeta(prefix)], OPEN_TIMEOUT_MS)) as [Row[]];
    if (row !== undefined) checkVersion(prefix, Number(row.version));
    if (shouldMigrate) await makeTables(connections, prefix);
  } catch (error) {
    if (!isTableMissing(error)) throw error;
    if (!shouldMigrate) throw tablesMissingError(prefix, "and migrate is false", error);
    await makeTables(connections, prefix, error);
  }
  try {
    // If meta was emptied, a user who may not make tables can still name the data again.
    if ((await datasetIdOf(connections, prefix)) === null)
      await connections.run([[insertMetaSql(prefix)]], OPEN_TIMEOUT_MS);
    await connections.run(probeStatements(prefix), OPEN_TIMEOUT_MS);
  } catch (error) {
    if (isTableMissing(error)) throw tablesMissingError(prefix, "or they are incomplete", error);
    if (!isForbidden(error)) throw error;
    throw unsuitableError(
      "The user of mysqlInbox may not do everything that events need.",
      `GRANT SELECT, INSERT, UPDATE, DELETE on the tables ${prefix}_records, _events, _readings, _notes and _meta to your user.`,
      error,
    );
  }
  const datasetId = await datasetIdOf(connections, prefix);
  if (datasetId === null) throw tablesMissingError(prefix, "or they were emptied");
  return datasetId;
}

async function makeTables(connections: Connections, prefix: string, cause?: unknown): Promise<void> {
  try {
    await connections.run(
      migrationSql(prefix).map((sql) => [sql] as const),
      OPEN_TIMEOUT_MS,
    );
  } catch (error) {
    if (!isForbidden(error)) throw error;
    // If they are there, nothing had to be made.
    if (cause !== undefined) throw tablesMissingError(prefix, "and this user may not create them", error);
  }
}

/** The id of the data set that is there now; null if the table of meta was emptied, or a table is missing. */
export async function datasetIdOf(connections: Connections, prefix: string): Promise<string | null> {
  const tableProbes = WRITTEN_TABLES.map((table) => [`SELECT 1 FROM ${prefix}_${table} LIMIT 0`] as const);
  try {
    const [[row] = []] = await connections.run([readMeta(prefix), ...tableProbes]);
    return row === undefined ? null : String(row.dataset_id);
  } catch (error) {
    if (isTableMissing(error)) return null;
    throw error;
  }
}

function readMeta(prefix: string): Statement {
  return [`SELECT version, dataset_id FROM ${prefix}_meta`];
}

async function readServerFacts(connections: Connections): Promise<Row> {
  const [[row = {}] = []] = await connections.run(
    [
      [
        `SELECT VERSION() AS version, DATABASE() AS name, @@max_allowed_packet AS packet, @@log_bin AS has_log,
        @@innodb_flush_log_at_trx_commit AS flushes, @@sync_binlog AS syncs`,
      ],
    ],
    OPEN_TIMEOUT_MS,
  );
  connections.maxPacketBytes = Number(row.packet);
  return row;
}

function checkServer({ version, name, has_log, flushes, syncs }: Row, warnings: SetupWarnings): void {
  const [, major = "", minor = "", patch = ""] = /^(\d+)\.(\d+)\.(\d+)/.exec(String(version)) ?? [];
  const versionNumber = Number(major) * 10_000 + Number(minor) * 100 + Number(patch);
  const isMariadb = /mariadb/i.test(String(version));
  if (versionNumber < (isMariadb ? 100_600 : 80_017)) {
    throw unsuitableError(
      `mysqlInbox needs MySQL 8.0.17 or MariaDB 10.6, and the server says ${/^[\w.-]{1,40}/.exec(String(version))?.[0] ?? "nothing"}.`,
      "Update the server, or use another inbox. Earlier ones cannot skip the rows that others have locked.",
    );
  }
  if (name === null) {
    throw unsuitableError(
      "The address of mysqlInbox names no database.",
      "Add it: mysql://user:password@host:3306/shop.",
    );
  }
  if (Number(flushes) !== 1) {
    warnings.add(
      `MySQL runs with innodb_flush_log_at_trx_commit = ${Number(flushes)}: acknowledged events are lost if its machine crashes.`,
      "Set it to 1.",
    );
  }
  if (Number(has_log) !== 0 && Number(syncs) !== 1) {
    warnings.add(
      `MySQL writes a binary log with sync_binlog = ${Number(syncs)}: acknowledged events may be lost if its machine crashes.`,
      "Set it to 1.",
    );
  }
}

function checkVersion(prefix: string, version: number): void {
  if (version === SCHEMA_VERSION) return;
  throw unsuitableError(
    `The tables ${prefix}_* of mysqlInbox have version ${version}, and this package knows version ${SCHEMA_VERSION}.`,
    "Update @payhooks/core.",
  );
}

function tablesMissingError(prefix: string, reason: string, cause?: unknown): PayhooksError {
  return unsuitableError(
    `There are no tables ${prefix}_* for mysqlInbox, ${reason}.`,
    `Let a user who may create tables run mysqlMigration("${prefix}") of @payhooks/core/mysql, then GRANT SELECT, INSERT, UPDATE, DELETE on them to your user.`,
    cause,
  );
}

function unsuitableError(problem: string, fix: string, cause?: unknown): PayhooksError {
  return new PayhooksError("ERR_MYSQL_UNSUITABLE", problem, { fix, cause });
}
