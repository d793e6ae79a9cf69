// Whether there is a PgBouncer, for the suite that starts one.
import { spawnSync } from "node:child_process";
import { suitesThatUse } from "./suites.mjs";

/** Suites that start a PgBouncer of their own. */
export const pgbouncerSuites = suitesThatUse("test/faults/harness/pgbouncer.ts");

/** True where one can be started. */
export function hasPgbouncer() {
  return spawnSync("pgbouncer", ["--version"], { stdio: "ignore" }).status === 0;
}

/** Says which suites are left out where there is none; with `CI` set that is a failure, since nobody would read the line. */
export function expectPgbouncer() {
  if (hasPgbouncer()) return;
  const line = `PgBouncer is missing: ${pgbouncerSuites.join(", ")} are left out. Install it: apt-get install -y pgbouncer`;
  process.stderr.write(`\u001b[31m${line}\u001b[0m\n`);
  if (process.env.CI) process.exit(1);
}
