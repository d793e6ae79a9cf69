/** `npm test` and `npm run test:rest` together run every file of tests, and none of them twice. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { deploySuites, hasDeployTools } from "../../scripts/deploy-tools.mjs";
import { hasMariadb, mariadbSuites } from "../../scripts/mariadb-server.mjs";
import { hasPgbouncer, pgbouncerSuites } from "../../scripts/pgbouncer.mjs";
import { postgresBin, postgresSuites } from "../../scripts/postgres-server.mjs";
import { hasPrometheus, prometheusSuites } from "../../scripts/prometheus.mjs";
import { hasRedis } from "../../scripts/redis-server.mjs";
import { root } from "./workspace.ts";

/** The files that a filter of projects chooses, one for each time that they are run. */
function filesOf(projects: string): readonly string[] {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = [vitest, "list", "--filesOnly", "--project", projects];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  expect(status, stderr).toBe(0);
  return stdout.match(/(?<=\] )\S+\.test\.ts$/gm) ?? [];
}

const folders = ["packages", "examples"]
  .flatMap((parent) => readdirSync(join(root, parent)).map((name) => join(parent, name, "test")))
  .concat("test")
  .filter((folder) => existsSync(join(root, folder)));

it("each file is run by one project", ({ skip }) => {
  skip(!hasRedis(), "some projects need redis-server, which is not installed");
  const there = folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) =>
        join(folder, file),
      ),
    )
    .filter((file) => file.endsWith(".test.ts") && !/node_modules|\/browser\//.test(file))
    .filter((file) => postgresBin() !== null || !postgresSuites.includes(file))
    .filter((file) => hasMariadb() || !mariadbSuites.includes(file))
    .filter((file) => hasPgbouncer() || !pgbouncerSuites.includes(file))
    .filter((file) => hasPrometheus() || !prometheusSuites.includes(file))
    .filter((file) => hasDeployTools() || !deploySuites.includes(file));
  expect([...filesOf("!rest*"), ...filesOf("rest*")].sort()).toEqual(there.sort());
});
