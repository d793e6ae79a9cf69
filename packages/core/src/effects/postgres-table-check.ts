/**
 * Checks at the start that the table of effects can be used, by the same statements as an effect. A refusal says which
 * setting is wrong, and what to do.
 */
import { isPayhooksError, type PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";
import { effectsUnsuitableError, idNotStoredError } from "./errors.ts";
import { codesOf, isPostgresUnavailable, textIn } from "./postgres-states.ts";
import { type PostgresQuery, type PostgresTable, postgresEffectsSql } from "./postgres-table.ts";

/** Runs statements, in a transaction or outside of one. */
export interface QueryRunner {
  withoutTransaction<T>(use: (query: PostgresQuery) => Promise<T>): Promise<T>;
  transaction<T>(work: (query: PostgresQuery) => Promise<T>): Promise<T>;
}

/** As long as an id can be. */
const MAX_ID_LENGTH = 255;

/**
 * Makes the table if it is missing, then stores an id, completes and deletes it, and rolls that back.
 *
 * @throws PayhooksError `ERR_EFFECTS_UNSUITABLE`; and the errors of a server that is away for now.
 */
export async function checkPostgresTable(table: PostgresTable, runner: QueryRunner): Promise<void> {
  const { name } = table;
  try {
    await runner.withoutTransaction((query) => makeTable(table, query));
    await tryOut(table, runner);
  } catch (error) {
    if (isPayhooksError(error)) throw error;
    if (isReadOnly(error) && (await runner.withoutTransaction(isReadOnlyByChoice)))
      throw readOnlyRoleError(error);
    if (isPostgresUnavailable(error)) throw error;
    throw explainSetupError(name, error) ?? error;
  }
}

async function makeTable(table: PostgresTable, query: PostgresQuery): Promise<void> {
  const exists = async (): Promise<boolean> => {
    const [row] = await query("SELECT coalesce(to_regclass($1::text)::text, '') AS found", [table.name]);
    return textIn(row, "found") !== "";
  };
  if (await exists()) return;
  const { name, shouldCreate: isMade } = table;
  if (!isMade) throw effectsUnsuitableError(`The table ${name} is missing.`, howToMake(name));
  try {
    for (const statement of postgresEffectsSql(name)) await query(statement, []);
  } catch (cause) {
    // Another process was faster. IF NOT EXISTS can still fail if two processes use it at the same time.
    if (await exists().catch(() => false)) return;
    const isForbidden = codesOf(cause).some((code) => /^(?:42501|3F)/.test(code));
    if (!isForbidden) throw cause;
    const reason = describeError(cause);
    throw effectsUnsuitableError(`The table ${name} cannot be made: ${reason}.`, howToMake(name), cause);
  }
}

async function tryOut(table: PostgresTable, { transaction }: QueryRunner): Promise<void> {
  const { name } = table;
  // Lower case only, so that the same id in upper case is another one.
  const id = `payhooks.probe.${crypto.randomUUID()}`.padEnd(MAX_ID_LENGTH, "x");
  let hasPassed = false;
  const undo = new Error("the probe of payhooks is rolled back");
  const probe = transaction(async (query) => {
    const insertedEffect = await table.insert(query, id, "begun");
    if (insertedEffect.found !== "nothing" || !(await table.finish(query, id, insertedEffect)))
      throw idNotStoredError(name);
    const [duplicate] = await query(`SELECT 1 AS one FROM ${name} WHERE id = $1::text`, [id.toUpperCase()]);
    if (duplicate !== undefined) {
      throw effectsUnsuitableError(
        `The table ${name} takes ids that differ in case for the same.`,
        `Give its column id a collation that compares bytes: ALTER TABLE ${name} ALTER COLUMN id TYPE text COLLATE "C";`,
      );
    }
    await query(`DELETE FROM ${name} WHERE id = $1::text`, [id]);
    hasPassed = true;
    throw undo;
  });
  try {
    await probe;
  } catch (error) {
    if (!hasPassed) throw error;
  }
}

function howToMake(name: string): string {
  return `Run payhooks migrate, or: ${postgresEffectsSql(name).join("; ")};`;
}

/** Explains an error that stays until a setting or the table is changed, by its code. Null for any other error. */
function explainSetupError(name: string, cause: unknown): PayhooksError | null {
  const codes = codesOf(cause);
  const has = (pattern: RegExp): boolean => codes.some((code) => pattern.test(code));
  const setupError = (problem: string, fix: string): PayhooksError =>
    effectsUnsuitableError(`${problem} (${describeError(cause)}).`, fix, cause);
  if (has(/^(?:28P01|P1000)$/)) {
    return setupError(
      "PostgreSQL refused the password of the role that effects connect with",
      "Correct the user and the password in the settings of the client that effects were given.",
    );
  }
  if (has(/^(?:28000|P1010)$/)) {
    return setupError(
      "PostgreSQL refused the role that effects connect with",
      "Check that the role exists and may log in, and that pg_hba.conf lets it into this database from here, with or without TLS.",
    );
  }
  if (has(/^(?:3D000|P1003)$/)) {
    return setupError(
      "The database that effects connect to does not exist",
      "Correct its name in the settings of the client that effects were given, or create it.",
    );
  }
  if (has(/^42501$/)) {
    return setupError(
      `The role lacks a privilege on the table ${name}, or a row-level policy keeps it out`,
      `Run as its owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ${name} TO the role of the application; and exempt the role from policies.`,
    );
  }
  if (has(/^42601$/)) {
    return setupError(
      `The name ${name} cannot be used for a table`,
      "It may be a reserved word of SQL. Choose another with the option table.",
    );
  }
  if (has(/^(?:42|22|23|0A|3F|P0)/)) {
    return setupError(
      `The table ${name} is not as effects need it`,
      `Another program may have a table of this name, or the table may have a trigger, a rule or a further constraint. Choose another name with the option table, or make it anew: ${postgresEffectsSql(name).join("; ")};`,
    );
  }
  return null;
}

function isReadOnly(error: unknown): boolean {
  return codesOf(error).includes("25006");
}

/** True if the role or the client is set to read only. If the server or the database is, that may pass. */
async function isReadOnlyByChoice(query: PostgresQuery): Promise<boolean> {
  const [row] = await query(
    `SELECT (NOT pg_is_in_recovery() AND setting = 'on'
       AND source IN ('user', 'database user', 'client', 'session'))::text AS chosen
     FROM pg_settings WHERE name = 'default_transaction_read_only'`,
    [],
  );
  return textIn(row, "chosen") === "true";
}

function readOnlyRoleError(cause: unknown): PayhooksError {
  return effectsUnsuitableError(
    "The role that effects connect with, or its client, is set to read only (default_transaction_read_only).",
    "Let it write, or give effects a client with a role that may write.",
    cause,
  );
}
