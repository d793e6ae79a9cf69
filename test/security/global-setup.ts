import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { formatTable, type Row } from "./table.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The file for rows of the table. */
    securityTable: string;
  }
}

/** Prints the table of all proofs at the end. */
export function setup(project: TestProject): () => void {
  const directory = mkdtempSync(join(tmpdir(), "payhooks-security-"));
  const table = join(directory, "table.jsonl");
  project.provide("securityTable", table);
  return () => {
    if (existsSync(table)) {
      const lines = readFileSync(table, "utf8").split("\n").filter(Boolean);
      console.log(formatTable(lines.map((line) => JSON.parse(line) as Row)));
    }
    rmSync(directory, { recursive: true, force: true });
  };
}
