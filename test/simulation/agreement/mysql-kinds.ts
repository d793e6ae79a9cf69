/** MariaDB on a real server, whose statements get the history's time instead of the server's. */
import { type Connection as Client, createPool, format, type Pool } from "mysql2/promise";
import type { Connection, Driver } from "../../../packages/core/src/mysql/client.ts";
import { NOW_SQL } from "../../../packages/core/src/mysql/statements.ts";
import { mysqlStoreOn } from "../../../packages/core/src/mysql/store.ts";
import { silent } from "../../support/silent.ts";
import type { TextMutant } from "./mutants.ts";
import { type Dataset, handMovedClock, type Kind } from "./world.ts";

/** Long, because a slow answer of a busy machine is no difference. */
const STATEMENT_TIMEOUT_MS = 10_000;

let datasets = 0;

/** `admin` is a client that removes the data. With a mutant, the statements have its mistake. */
export function mysqlKind(
  url: string,
  admin: Client,
  mutant?: TextMutant,
  onChange: () => void = () => {},
): Kind {
  const make = (): Dataset => {
    const prefix = `agreement_${process.pid}_${++datasets}`;
    const { clock, setTime } = handMovedClock();
    const changed = (sql: string): string => {
      const timed = sql.replaceAll(NOW_SQL, String(clock.now()));
      if (mutant === undefined || !sql.includes(mutant.from)) return timed;
      onChange();
      return sql.replaceAll(mutant.from, mutant.to).replaceAll(NOW_SQL, String(clock.now()));
    };
    const driver: Driver = {
      format: (sql, values) => format(sql, values as string[]),
      createPool(settings) {
        const pool: Pool = createPool(settings);
        return {
          end: () => pool.end(),
          async getConnection() {
            const real = (await pool.getConnection()) as unknown as Connection;
            return {
              connection: real.connection,
              release: () => real.release(),
              destroy: () => real.destroy(),
              query: (query) => real.query({ ...query, sql: changed((query as { sql: string }).sql) }),
            };
          },
        };
      },
    };
    const options = { prefix, clock, logger: silent, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
    return {
      connect: () => mysqlStoreOn(async () => driver, url, options),
      setTime,
      async close() {
        const tables = ["records", "events", "readings", "notes", "meta"].map((name) => `${prefix}_${name}`);
        await admin.query(`DROP TABLE ${tables.join(", ")}`);
      },
    };
  };
  return { name: "MariaDB", listsFinished: true, distrustsClock: false, make };
}

export const mysqlMutants: readonly TextMutant[] = [
  {
    name: "refuses a write that has exactly the maximum age",
    from: `${NOW_SQL} - 5000 AND`,
    to: `${NOW_SQL} - 4999 AND`,
  },
  {
    name: "takes a write that is one millisecond ahead",
    from: `- 5000 AND ${NOW_SQL}`,
    to: `- 5000 AND ${NOW_SQL} + 1`,
  },
  { name: "writes without checking the version", from: "AND r.version = '", to: "AND r.version <> 'none" },
  { name: "keeps finished records for ever", from: "(r.expires_at IS NULL OR", to: "(TRUE OR" },
  {
    name: "takes the record that became due last first",
    from: "ORDER BY due_at LIMIT",
    to: "ORDER BY due_at DESC LIMIT",
  },
  {
    name: "does not hide the records that it takes",
    from: "SET r.due_at = CAST",
    to: "SET r.due_at = 0 * CAST",
  },
  {
    name: "repeats the last event of a page on the next page",
    from: "(e.accepted_at, e.event_id) > (",
    to: "(e.accepted_at, e.event_id) >= (",
  },
  {
    name: "counts an event under its previous state",
    from: "ON DUPLICATE KEY UPDATE state = ",
    to: "ON DUPLICATE KEY UPDATE flow = ",
  },
  { name: "takes no new record in place of an expired one", from: "AND r.expires_at <= ", to: "AND 0 > " },
];
