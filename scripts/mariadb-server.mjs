// Looks for a MariaDB, for the suite that starts one.
import { spawnSync } from "node:child_process";
import { leaveOut, suitesThatUse } from "./suites.mjs";

/** Suites that start a MariaDB of their own. */
export const mariadbSuites = suitesThatUse("test/effects/mariadb-server.ts");

/** True where a server can be started. */
export function hasMariadb() {
  return spawnSync("mariadbd", ["--version"], { stdio: "ignore" }).status === 0;
}

/** If there is none, prints which suites are left out. With `CI` set, that is a failure, since nobody would read the line. */
export function expectMariadb() {
  if (hasMariadb()) return;
  leaveOut(mariadbSuites, "MariaDB", "apt-get install -y mariadb-server");
}
