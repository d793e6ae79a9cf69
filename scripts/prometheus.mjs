// Looks for a Prometheus, for the suite that starts one.
import { spawnSync } from "node:child_process";
import { leaveOut, suitesThatUse } from "./suites.mjs";

/** Suites that start a Prometheus of their own. */
export const prometheusSuites = suitesThatUse("test/otel/prometheus-server.ts");

/** True where one can be started. */
export function hasPrometheus() {
  return spawnSync("prometheus", ["--version"], { stdio: "ignore" }).status === 0;
}

/** If there is none, prints which suites are left out. With `CI` set, that is a failure, since nobody would read the line. */
export function expectPrometheus() {
  if (hasPrometheus()) return;
  leaveOut(prometheusSuites, "Prometheus", "apt-get install -y prometheus");
}
