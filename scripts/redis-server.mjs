// Finds redis-server for the suites that start one.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { leaveOut } from "./suites.mjs";

const INSTALL = "apt-get install -y redis-server";
/** Suites that start a Redis of their own. */
export const redisSuites = [
  "test/faults/!(sqlite|postgres*).test.ts",
  "test/contract/redis*.test.ts",
  "test/contract/{erase,postgres-move,seal}.test.ts",
  "test/bench/by-hand/ways.test.ts",
  "test/examples/next.test.ts",
  "test/package/next.test.ts",
  "test/otel/traces.test.ts",
  "test/simulation/agreement/{agreement,mutants}.test.ts",
];

/** True where a redis-server can be started. */
export function hasRedis() {
  return spawnSync("redis-server", ["--version"], { stdio: "ignore" }).status === 0;
}

/**
 * Installs redis-server where that is possible without asking anybody (Debian, as root). If it is not, prints which
 * suites are left out, and returns. With `CI` set, that is a failure, since nobody would read the line.
 */
export function provideRedis() {
  if (hasRedis() || (isDebianRoot() && installs() && hasRedis())) return;
  leaveOut(redisSuites, "redis-server", INSTALL);
}

function isDebianRoot() {
  return existsSync("/etc/debian_version") && process.getuid?.() === 0;
}

function installs() {
  process.stdout.write("Installing redis-server…\n");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const run = (...args) => spawnSync("apt-get", args, { stdio: "ignore", env }).status === 0;
  // Only the program: the package's service must not take the port of another Redis.
  const args = ["install", "-y", "--no-install-recommends", "redis-server"];
  return run(...args) || (run("update") && run(...args));
}
