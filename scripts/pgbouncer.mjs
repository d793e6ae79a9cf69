// Looks for a PgBouncer, for the suite that starts one.
import { spawnSync } from "node:child_process";
import { leaveOut, suitesThatUse } from "./suites.mjs";

/** Suites that start a PgBouncer of their own. */
export const pgbouncerSuites = suitesThatUse("test/faults/harness/pgbouncer.ts");

/** True where one can be started. */
export function hasPgbouncer() {
  return spawnSync("pgbouncer", ["--version"], { stdio: "ignore" }).status === 0;
}

/** If there is none, prints which suites are left out. With `CI` set, that is a failure, since nobody would read the line. */
export function expectPgbouncer() {
  if (hasPgbouncer()) return;
  leaveOut(pgbouncerSuites, "PgBouncer", "apt-get install -y pgbouncer");
}
