/** `payhooks migrate`, and a dry run of `payhooks move`, on a real PostgreSQL. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pgEffects } from "@payhooks/core/effects/postgres";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { Scope } from "../faults/harness/scope.ts";
import { root } from "../package/workspace.ts";

const scope = new Scope();
let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await PostgresServer.start(scope);
  pool = new Pool({ connectionString: server.url });
});
afterAll(async () => {
  await pool.end();
  await scope.close();
});

const payhooks = (...args: readonly string[]): { code: number | null; said: string } => {
  const program = join(root, "packages/cli/src/payhooks.ts");
  const flags = ["--conditions=payhooks-source", "--import=tsx", program];
  const done = spawnSync(process.execPath, [...flags, ...args], {
    cwd: join(root, "test"),
    encoding: "utf8",
  });
  return { code: done.status, said: done.stdout + done.stderr };
};
const migrate = (...args: readonly string[]) => payhooks("migrate", ...args);

it("payhooks migrate makes the table that a receiver may not make itself, and does nothing the second time", async () => {
  const effects = pgEffects(pool, { createTable: false });
  await expect(effects.open()).rejects.toMatchObject({ code: "ERR_EFFECTS_UNSUITABLE" });
  for (const _ of ["first", "second"]) {
    expect(migrate("--postgres", server.url)).toEqual({
      code: 0,
      said: "The table payhooks_effects is ready.\n",
    });
  }
  await effects.open();
});

it("prints statements that make the same table", async () => {
  const { said } = migrate("--sql", "--table", "by_hand");
  await pool.query(said);
  await pgEffects(pool, { createTable: false, table: "by_hand" }).open();
});

it("payhooks migrate tells a role that may not make it what to run", async () => {
  await pool.query("CREATE ROLE shop LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
  const url = server.url.replace("postgres@", "shop@");
  const { code, said } = migrate("--postgres", url, "--table", "not_allowed");
  expect(code).toBe(1);
  expect(said).toContain("42501");
  expect(said).toContain("CREATE TABLE IF NOT EXISTS not_allowed");
});

it("a dry run of payhooks move makes no tables in the new inbox", async () => {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-move-"));
  const from = join(folder, "old.db");
  const inbox = sqliteInbox(from);
  await inbox.ready();
  await inbox.close({ graceMs: 0 });
  const { code, said } = payhooks("move", "--from", from, "--to", server.url, "--dry-run");
  rmSync(folder, { recursive: true });
  expect(said).toContain("The new inbox does not exist yet. It would be created.");
  expect(code).toBe(0);
  const { rows } = await pool.query("SELECT 1 FROM pg_namespace WHERE nspname = 'payhooks'");
  expect(rows).toEqual([]);
});
