// Where PostgreSQL comes from, for the suites that start one: the one place that knows.
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Suites that start a PostgreSQL of their own. */
export const postgresSuites = [
  "test/bench/by-hand/ways.test.ts",
  "test/contract/postgres-move.test.ts",
  "test/faults/postgres-pgbouncer.test.ts",
  "test/contract/postgres-store.test.ts",
  "test/contract/postgres.test.ts",
  "test/contract/postgres-due.test.ts",
  "test/contract/postgres-failures.test.ts",
  "test/contract/postgres-hints.test.ts",
  "test/contract/postgres-losses.test.ts",
  "test/contract/postgres-plans.test.ts",
  "test/contract/postgres-setup.test.ts",
  "test/effects/controls.test.ts",
  "test/effects/migrate.test.ts",
  "test/effects/postgres.test.ts",
  "test/examples/postgres.test.ts",
  "test/examples/shop.test.ts",
  "test/faults/ledger.test.ts",
  "test/faults/postgres.test.ts",
  "test/faults/postgres-backup.test.ts",
  "test/faults/postgres-disks.test.ts",
  "test/faults/postgres-pool.test.ts",
  "test/simulation/agreement/postgres.test.ts",
];

/** Where Debian keeps the server, out of PATH, by version. */
const DEBIAN = "/usr/lib/postgresql";

/** The folder with `initdb` and `postgres`, or null. */
export function postgresBin({ debian = DEBIAN, path = process.env.PATH ?? "" } = {}) {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, "bin")), ...path.split(delimiter)];
  const hasServer = (folder) =>
    folder !== "" && ["initdb", "postgres"].every((program) => existsSync(join(folder, program)));
  return folders.find(hasServer) ?? null;
}

/** Says which suites are left out where there is none; with `CI` set that is a failure, since nobody would read the line. */
export function expectPostgres(where = {}) {
  if (postgresBin(where) !== null) return;
  const line = `PostgreSQL is missing: ${postgresSuites.join(", ")} are left out. Install it: apt-get install -y postgresql`;
  process.stderr.write(`\u001b[31m${line}\u001b[0m\n`);
  if (process.env.CI) process.exit(1);
}
