/** The contracts of stores and of inboxes on the SQLite driver that this runtime brings. Prints one line of JSON. */
import type { SqliteHandle } from "@payhooks/core/sqlite";
import { sqliteCases } from "../contract/sqlite-cases.ts";

const isBun = "Bun" in globalThis;
// Variables, so that the bundler leaves them to the runtime.
const [driver, className] = isBun ? ["bun:sqlite", "Database"] : ["node:sqlite", "DatabaseSync"];
const module = (await import(driver)) as Readonly<Record<string, new (file: string) => SqliteHandle>>;
const Database = module[className];
if (Database === undefined) throw new Error(`${driver} has no ${className}`);

const cases = sqliteCases((file) => new Database(file));
const failed: string[] = [];
for (const { name, run } of cases) {
  try {
    await run();
  } catch (error) {
    failed.push(`${name}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}
const version = isBun ? (process.versions.bun ?? "") : process.versions.node;
console.log(JSON.stringify({ driver, version, passed: cases.length - failed.length, failed }));
