/** Checks at the start, beside the version of the tables, that the database can hold every event, and that the role may work. */
import { PayhooksError } from "../protocol/errors.ts";
import type { Row, Statement } from "./client.ts";
import { quoteSchema } from "./schema.ts";

/** The privileges that each table needs. A view is for people only. */
const REQUIRED_PRIVILEGES = {
  records: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  labels: ["SELECT", "INSERT", "DELETE"],
  unfinished: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  readings: ["SELECT", "INSERT", "DELETE"],
  notes: ["SELECT", "INSERT", "UPDATE"],
  meta: ["SELECT"],
} as const;

/** Asks for the encoding of the database, and for the privileges that the role lacks. It reads only the catalogue. */
export function inspectSuitability(schema: string): Statement {
  const privilegeRows = Object.entries(REQUIRED_PRIVILEGES).flatMap(([table, privileges]) =>
    privileges.map((privilege) => `('${table}', '${privilege}')`),
  );
  return {
    name: `payhooks_${schema}_suitability`,
    text: `SELECT current_setting('server_encoding') AS encoding,
      (SELECT string_agg(privilege || ' ON ${schema}.' || name, ', ' ORDER BY name, privilege)
        FROM (VALUES ${privilegeRows.join(", ")}) AS needed (name, privilege)
        WHERE NOT has_table_privilege('${quoteSchema(schema)}.' || name, privilege)) AS lacking`,
  };
}

/**
 * @throws PayhooksError `ERR_POSTGRES_UNSUITABLE` for an encoding that cannot write every event, or a privilege that is missing.
 */
export function checkSuitability(schema: string, row: Row | undefined): void {
  const { encoding, lacking } = row ?? {};
  // PGlite and other servers of one encoding may not have the setting. They have UTF8.
  if (typeof encoding === "string" && encoding !== "UTF8") {
    throw new PayhooksError(
      "ERR_POSTGRES_UNSUITABLE",
      `The database of postgresInbox has the encoding ${encoding}, which cannot write every event.`,
      {
        fix: "Use a database with the encoding UTF8: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0.",
      },
    );
  }
  if (typeof lacking !== "string" || lacking === "") return;
  throw new PayhooksError(
    "ERR_POSTGRES_UNSUITABLE",
    `The role of postgresInbox may not do everything that events need. It lacks: ${lacking}.`,
    {
      fix: `GRANT USAGE ON SCHEMA ${quoteSchema(schema)} TO your_role; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${quoteSchema(schema)} TO your_role;`,
    },
  );
}
