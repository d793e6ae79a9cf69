/** Without PostgreSQL, the suites that start one are named, and left out. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { mariadbSuites } from "../../scripts/mariadb-server.mjs";
import { pgbouncerSuites } from "../../scripts/pgbouncer.mjs";
import { postgresBin, postgresSuites } from "../../scripts/postgres-server.mjs";

const folder = mkdtempSync(join(tmpdir(), "payhooks-no-postgres-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A folder as Debian has it, with these versions, each with or without the server. */
function debianWith(versions: Readonly<Record<string, readonly string[]>>): string {
  const debian = mkdtempSync(join(folder, "debian-"));
  for (const [version, programs] of Object.entries(versions)) {
    mkdirSync(join(debian, version, "bin"), { recursive: true });
    for (const program of programs) writeFileSync(join(debian, version, "bin", program), "");
  }
  return debian;
}

const server = ["initdb", "postgres"];
const line = `\u001b[31mPostgreSQL is missing: ${postgresSuites.join(", ")} are left out. Install it: apt-get install -y postgresql\u001b[0m\n`;

it("the suites that start a server are found by what they import, by themselves or through another file", () => {
  expect(postgresSuites).toContain("test/contract/postgres.test.ts");
  expect(postgresSuites).toContain("test/effects/postgres-thrown.test.ts");
  expect(postgresSuites.filter((file) => /sqlite|redis|package/.test(file))).toEqual([]);
  expect(mariadbSuites).toContain("test/contract/mysql.test.ts");
  expect(mariadbSuites).toContain("test/effects/mysql.test.ts");
  expect(mariadbSuites.filter((file) => !/mysql|bench\/by-hand\/ways/.test(file))).toEqual([]);
  expect(pgbouncerSuites).toEqual(["test/faults/postgres-pgbouncer.test.ts"]);
});

describe("PostgreSQL", () => {
  it("is looked for where Debian has it, the newest first, and in PATH", () => {
    const debian = debianWith({ 9: server, 15: server, 16: ["psql"] });
    expect(postgresBin({ debian, path: "" })).toBe(join(debian, "15", "bin"));
    const elsewhere = join(debian, "9", "bin");
    expect(postgresBin({ debian: join(folder, "nowhere"), path: elsewhere })).toBe(elsewhere);
    expect(postgresBin({ debian: debianWith({ 16: ["psql"] }), path: "" })).toBeNull();
  });

  it.each([
    [{}, 0],
    [{ CI: "true" }, 1],
  ])("is asked for in one red line where it is missing; with %j the exit code is %i", (env, exitCode) => {
    const program = `import { expectPostgres } from "./scripts/postgres-server.mjs"; expectPostgres({ debian: "/nowhere", path: "" });`;
    const { CI: _, ...inherited } = process.env;
    const args = ["--input-type=module", "--eval", program];
    const done = spawnSync(process.execPath, args, { encoding: "utf8", env: { ...inherited, ...env } });
    expect(done.stderr).toBe(line);
    expect(done.status).toBe(exitCode);
  });
});
