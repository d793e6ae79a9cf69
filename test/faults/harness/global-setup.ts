import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "tsup";
import type { TestProject } from "vitest/node";
import { formatTable, type Row } from "./table.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Files to run: the process under test in one file, so that it starts quickly, and what shifts its clock. */
    faultsBundle: { readonly child: string; readonly shiftedClock: string };
    /** The file that gets the rows of the table. */
    faultsTable: string;
  }
}

/** Bundles the process under test once, and prints the table at the end. */
export async function setup(project: TestProject): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), "payhooks-faults-"));
  const entry = (name: string): string => fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  await build({
    config: false,
    entry: { child: entry("child"), "shifted-clock": entry("shifted-clock") },
    outDir: directory,
    format: "esm",
    outExtension: () => ({ js: ".mjs" }),
    platform: "node",
    target: "node20",
    noExternal: [/./],
    splitting: false,
    silent: true,
    // Bundled CommonJS modules ask for Node's own modules by `require`.
    banner: {
      js: `import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);`,
    },
    esbuildOptions: (options) => {
      options.conditions = ["payhooks-source", "module", "node"];
    },
  });
  const table = join(directory, "table.jsonl");
  project.provide("faultsBundle", {
    child: join(directory, "child.mjs"),
    shiftedClock: join(directory, "shifted-clock.mjs"),
  });
  project.provide("faultsTable", table);
  appendFileSync(table, "");
  return () => {
    if (existsSync(table)) {
      const lines = readFileSync(table, "utf8").split("\n").filter(Boolean);
      if (lines.length > 0) console.log(formatTable(lines.map((line) => JSON.parse(line) as Row)));
    }
    rmSync(directory, { recursive: true, force: true });
  };
}
