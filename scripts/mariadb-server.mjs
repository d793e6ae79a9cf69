// Whether there is a MariaDB, for the suite that starts one.
import { spawnSync } from "node:child_process";
import { suitesThatUse } from "./suites.mjs";

/** Suites that start a MariaDB of their own. */
export const mariadbSuites = suitesThatUse("test/effects/mariadb-server.ts");

/** True where a server can be started. */
export function hasMariadb() {
  return spawnSync("mariadbd", ["--version"], { stdio: "ignore" }).status === 0;
}

/** Says which suites are left out where there is none; with `CI` set that is a failure, since nobody would read the line. */
export function expectMariadb() {
  if (hasMariadb()) return;
  const line = `MariaDB is missing: ${mariadbSuites.join(", ")} are left out. Install it: apt-get install -y mariadb-server`;
  process.stderr.write(`\u001b[31m${line}\u001b[0m\n`);
  if (process.env.CI) process.exit(1);
}
