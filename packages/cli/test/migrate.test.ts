import { postgresMigration } from "@payhooks/core/postgres";
import { describe, expect, it } from "vitest";
import { payhooks } from "./support/run.ts";

/** With a database: test/effects/migrate.test.ts. */
describe("payhooks migrate", () => {
  it("prints what makes the table in PostgreSQL", async () => {
    const { code, stdout } = await payhooks(["migrate", "--sql", "--table", "shop.effects"]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      'CREATE TABLE IF NOT EXISTS shop.effects (id text COLLATE "C" PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), done boolean NOT NULL DEFAULT false);\n' +
        "CREATE INDEX IF NOT EXISTS effects_by_at ON shop.effects (at);\n",
    );
  });

  it("prints what makes it in SQLite", async () => {
    const { stdout } = await payhooks(["migrate", "--sql", "--for", "sqlite"]);
    expect(stdout).toContain("WITHOUT ROWID;");
  });

  it("prints the tables of an inbox, as the inbox makes them", async () => {
    const { code, stdout } = await payhooks(["migrate", "--sql", "--inbox", "postgres", "--schema", "pay"]);
    expect(code).toBe(0);
    expect(stdout).toBe(`${postgresMigration("pay")}\n`);
  });

  it.each([
    [["migrate", "--sql", "--inbox", "redis"], 2, "--inbox must be one of postgres"],
    [["migrate", "--sql", "--inbox", "postgres", "--table", "a"], 2, "--inbox does not go with --table"],
    [["migrate", "--sql", "--schema", "pay"], 2, "--schema goes with --inbox"],
    [["migrate", "--inbox", "postgres", "--postgres", "postgres://x"], 2, "--inbox goes with --sql"],
    [["migrate"], 2, "There is no database to migrate"],
    [["migrate", "--sql", "--table", "a b"], 2, 'table is "a b"'],
    [["migrate", "--sql", "--for", "oracle"], 2, "oracle"],
    [
      ["migrate", "--postgres", "postgres://127.0.0.1:1/none"],
      1,
      "cannot be reached, or accepts no writes now: Error: ECONNREFUSED",
    ],
  ])("%j ends with %i", async (args, code, text) => {
    const { code: exitCode, stderr } = await payhooks(args, { env: { DATABASE_URL: "" } });
    expect(stderr).toContain(text);
    expect(exitCode).toBe(code);
  });
});
