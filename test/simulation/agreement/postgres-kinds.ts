/**
 * PostgreSQL on a real server, and PGlite. A function of the tests replaces `statement_timestamp`, and returns the history's time.
 */
import type { PGlite } from "@electric-sql/pglite";
import type { PostgresTarget, QueryClient } from "../../../packages/core/src/postgres/client.ts";
import { postgresStore } from "../../../packages/core/src/postgres/store.ts";
import { silent } from "../../support/silent.ts";
import type { TextMutant } from "./mutants.ts";
import { type Dataset, handMovedClock, type Kind } from "./world.ts";

/** Long, because a slow answer of a busy machine is no difference. */
const STATEMENT_TIMEOUT_MS = 10_000;

const CLOCK = `
  CREATE SCHEMA history;
  CREATE TABLE history.clock (ms bigint NOT NULL);
  INSERT INTO history.clock VALUES (0);
  CREATE FUNCTION history.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS $$ SELECT timestamptz 'epoch' + ms * interval '1 millisecond' FROM history.clock $$;
`;
/** PostgreSQL searches `pg_catalog` first, unless the path names it. */
const SEARCHED = "history,pg_catalog,public";

let datasets = 0;

function newDataset(server: QueryClient, target: PostgresTarget): Dataset {
  const schema = `agreement_${process.pid}_${++datasets}`;
  const { clock, setTime } = handMovedClock();
  const options = { schema, clock, logger: silent, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
  return {
    connect: () => postgresStore(target, options),
    async setTime(now) {
      setTime(now);
      await server.query("UPDATE history.clock SET ms = $1", [now]);
    },
    async close() {
      await server.query(`DROP SCHEMA ${schema} CASCADE`, []);
    },
  };
}

function kind(name: string, server: QueryClient, target: PostgresTarget): Kind {
  return { name, listsFinished: true, distrustsClock: false, make: () => newDataset(server, target) };
}

/** Makes the clock of a server's histories. */
export async function prepareClock(run: (sql: string) => Promise<unknown>): Promise<void> {
  await run(CLOCK);
}

/** The server's address for sessions that get the history's time. */
export function timedUrl(url: string): string {
  return `${url}?options=${encodeURIComponent(`-c search_path=${SEARCHED}`)}`;
}

/** With connections of its own, as in a receiver. */
export function postgresKind(server: QueryClient, url: string): Kind {
  return kind("PostgreSQL", server, timedUrl(url));
}

/**
 * With one client that runs one statement after the other. `server` has a timed address. With a mutant, the statements have its
 * mistake.
 */
export function singlePostgresKind(
  server: QueryClient,
  mutant?: TextMutant,
  onChange: () => void = () => {},
): Kind {
  const client: QueryClient = {
    query(text, values) {
      if (mutant === undefined || !text.includes(mutant.from)) return server.query(text, values);
      onChange();
      return server.query(text.replaceAll(mutant.from, mutant.to), values);
    },
  };
  return kind("PostgreSQL with one client", server, client);
}

export async function pgliteKind(database: PGlite): Promise<Kind> {
  await database.exec(`${CLOCK} SET search_path = ${SEARCHED}`);
  return kind("PGlite", database, database);
}

const NOW = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

export const postgresMutants: readonly TextMutant[] = [
  { name: "refuses a write that has exactly the maximum age", from: "AND at >= floor", to: "AND at > floor" },
  {
    name: "takes a write that is one millisecond ahead",
    from: "::bigint AND at >=",
    to: "::bigint + 1 AND at >=",
  },
  { name: "writes without checking the version", from: "AND r.version = i.expected", to: "" },
  { name: "keeps finished records for ever", from: "(expires_at IS NULL OR", to: "(TRUE OR" },
  {
    name: "takes the record that became due last first",
    from: "ORDER BY due_at LIMIT",
    to: "ORDER BY due_at DESC LIMIT",
  },
  {
    name: "does not hide the records that it takes",
    from: `SET due_at = ${NOW} + $2::bigint, taken = TRUE`,
    to: "SET due_at = due.due_at + 0 * $2::bigint",
  },
  {
    name: "ends the hiding of a taken record a millisecond early",
    from: `SET due_at = ${NOW} + $2::bigint`,
    to: `SET due_at = ${NOW} + $2::bigint - 1`,
  },
  {
    name: "never takes a record whose hiding has ended",
    from: "UNION ALL SELECT * FROM lapsed",
    to: "UNION ALL SELECT * FROM lapsed WHERE FALSE",
  },
  {
    name: "repeats the last event of a page on the next page",
    from: ") > (to_timestamp",
    to: ") >= (to_timestamp",
  },
  { name: "counts events that have ended", from: "WHERE change = 'closed'", to: "WHERE FALSE" },
  { name: "counts an event under its previous state", from: "WHERE change = 'moved'", to: "WHERE FALSE" },
  {
    name: "leaves an event in its old state if its record is written alone",
    from: "WHERE record = (SELECT row_id FROM written) AND",
    to: "WHERE FALSE AND",
  },
  {
    name: "takes a single write that is one millisecond ahead",
    from: "::bigint AND $2::bigint >= floor",
    to: "::bigint + 1 AND $2::bigint >= floor",
  },
  {
    name: "makes a single write without checking the version",
    from: "WHERE key = $1::text AND version =",
    to: "WHERE key = $1::text AND '' <>",
  },
  {
    name: "lists only the first event of a record",
    from: "JOIN written USING (key)\n    )",
    to: "JOIN written USING (key) LIMIT 1)",
  },
  { name: "lists events that are no longer in their record", from: "DELETE FROM", to: "SELECT FROM" },
  {
    name: "removes the expiry of a record when it is written",
    from: "expires_at = k.expires_at",
    to: "expires_at = NULL",
  },
];
