/** Runs the suites without redis-server, on a machine where it cannot be installed, as for anybody who is not root on Debian. */
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { globSync } from "tinyglobby";
import { afterAll, describe, expect, it } from "vitest";
import { deploySuites } from "../../scripts/deploy-tools.mjs";
import { mariadbSuites } from "../../scripts/mariadb-server.mjs";
import { pgbouncerSuites } from "../../scripts/pgbouncer.mjs";
import { postgresBin, postgresSuites } from "../../scripts/postgres-server.mjs";
import { prometheusSuites } from "../../scripts/prometheus.mjs";
import { redisSuites } from "../../scripts/redis-server.mjs";

/** The only folder that is searched for programs: it has Node, and neither redis-server nor apt-get. */
const folder = mkdtempSync(join(tmpdir(), "payhooks-no-redis-"));
symlinkSync(process.execPath, join(folder, "node"));
afterAll(() => rmSync(folder, { recursive: true }));

function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): SpawnSyncReturns<string> {
  const { CI: _, ...inherited } = process.env;
  return spawnSync(process.execPath, args, {
    encoding: "utf8",
    env: { ...inherited, PATH: folder, ...env },
  });
}

const provide = [
  "--input-type=module",
  "--eval",
  `import { provideRedis } from "./scripts/redis-server.mjs"; provideRedis(); console.log("goes on");`,
];
const line = `\u001b[31mredis-server is missing: ${redisSuites.join(", ")} are left out. Install it: apt-get install -y redis-server\u001b[0m\n`;

describe("without redis-server", () => {
  it("one red line names the suites that are left out and the command that installs it, and the rest goes on", () => {
    const { status, stdout, stderr } = run(provide);
    expect(stderr).toBe(line);
    expect(stdout).toMatch(/goes on\n$/);
    expect(status).toBe(0);
  });

  it("CI fails with the same line, since nobody would read it there", () => {
    const { status, stdout, stderr } = run(provide, { CI: "true" });
    expect(stderr).toBe(line);
    expect(stdout).not.toContain("goes on");
    expect(status).toBe(1);
  });

  it("every other suite is run, the faults on SQLite among them", () => {
    const { status, stdout, stderr } = run(["node_modules/vitest/vitest.mjs", "list", "--filesOnly"]);
    expect(status, stderr).toBe(0);
    const listed = stdout.match(/(?<=\] )test\/.*\.test\.ts$/gm) ?? [];
    const isOnRedis = (file: string) =>
      /^(faults\/(?!sqlite|postgres)|contract\/(redis|postgres-move|erase|seal)|bench\/by-hand\/ways|(examples|package)\/next\.|simulation\/agreement\/(agreement|mutants)|otel\/traces)/.test(
        file,
      );
    const hasPostgres = postgresBin({ path: folder }) !== null;
    const others = globSync("**/*.test.ts", { cwd: "test", ignore: ["**/node_modules/**", "browser/**"] })
      .filter((file) => !isOnRedis(file))
      .map((file) => `test/${file}`)
      // MariaDB, PgBouncer, Prometheus and nginx are looked for where programs are: here they are missing too, as PostgreSQL is on macOS.
      .filter(
        (file) =>
          ![...mariadbSuites, ...pgbouncerSuites, ...prometheusSuites, ...deploySuites].includes(file),
      )
      .filter((file) => hasPostgres || !postgresSuites.includes(file));
    expect(listed.sort()).toEqual(others.sort());
    expect(listed).toContain("test/faults/sqlite.test.ts");
  });
});
