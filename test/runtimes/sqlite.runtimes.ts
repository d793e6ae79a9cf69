/** The contracts of inboxes and stores on `node:sqlite`, `bun:sqlite` and better-sqlite3; `test/contract` has libsql. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { SqliteHandle } from "@payhooks/core/sqlite";
import { storeContract } from "@payhooks/core/testing/store";
import { build } from "tsup";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { casesOfSlowStores, inboxContract } from "../contract/inbox-contract.ts";
import { sqliteCases } from "../contract/sqlite-cases.ts";
import { effectsHappenOnce } from "../contract/sqlite-effects.ts";
import { sqliteInboxFixture, sqliteKind } from "../contract/sqlite-inbox-fixture.ts";
import { sqliteStoreFixture } from "../contract/sqlite-store-fixture.ts";
import { sqliteTraits } from "../contract/sqlite-store-traits.ts";
import { root } from "../package/workspace.ts";
import { BUN, NODES, type Runtime, requireDriver } from "./install.ts";

const folder = mkdtempSync(join(tmpdir(), "payhooks-sqlite-contract-"));
const require = createRequire(import.meta.url);

beforeAll(async () => {
  await build({
    config: false,
    entry: { contract: join(root, "test/runtimes/sqlite-contract.ts") },
    outDir: folder,
    format: "esm",
    outExtension: () => ({ js: ".mjs" }),
    platform: "node",
    target: "node20",
    noExternal: [/./],
    splitting: false,
    silent: true,
    esbuildOptions: (options) => {
      options.conditions = ["payhooks-source", "module", "node"];
      options.alias = {
        vitest: join(root, "test/runtimes/expect.mjs"),
        // A part of vitest, and so where vitest can find it.
        "@vitest/expect": createRequire(require.resolve("vitest/package.json")).resolve("@vitest/expect"),
      };
    },
  });
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const withSqlite = [...NODES.filter(({ name }) => name !== "node-20"), BUN];

describe("the contracts on the runtime's own SQLite", () => {
  it.each(withSqlite)("$name", { timeout: 300_000 }, async ({ name, command, args, version }: Runtime) => {
    const contract = [...args, join(folder, "contract.mjs")];
    const { stdout } = await promisify(execFile)(command, contract, { maxBuffer: 16 * 1024 * 1024 });
    const said = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as unknown;
    const cases = sqliteCases(() => expect.fail("nothing is opened"));
    expect(said).toEqual({
      driver: name === "bun" ? "bun:sqlite" : "node:sqlite",
      version,
      passed: cases.length,
      failed: [],
    });
  });
});

const whyNoDrivers = inject("whyNoDrivers");
if (whyNoDrivers === null) {
  const open = (file: string): SqliteHandle => {
    const Database = requireDriver("better-sqlite3") as new (name: string) => SqliteHandle;
    return new Database(file);
  };
  describe("the store contract: SQLite with better-sqlite3", () => {
    for (const { name, run } of storeContract(() => sqliteStoreFixture(open), sqliteTraits)) it(name, run);
  });
  inboxContract("SQLite with better-sqlite3", () => sqliteInboxFixture(open), sqliteKind, {
    cases: casesOfSlowStores,
  });
  it("effects with better-sqlite3 happen once", () => effectsHappenOnce(open));
} else {
  it("SQLite with better-sqlite3", () => expect.fail(whyNoDrivers));
}
