/** The contract of stores on the SQLite driver that this runtime brings. Prints one line of JSON. */
import type { SqliteHandle } from "@payhooks/core/sqlite";
import { sqliteStoreGround, sqliteTraits } from "../contract/sqlite-store-ground.ts";
import { casesFor, runStoreCase } from "../contract/store-contract.ts";

const isBun = "Bun" in globalThis;
// Variables, so that the bundler leaves them to the runtime.
const [driver, className] = isBun ? ["bun:sqlite", "Database"] : ["node:sqlite", "DatabaseSync"];
const module = (await import(driver)) as Readonly<Record<string, new (file: string) => SqliteHandle>>;
const Database = module[className];
if (Database === undefined) throw new Error(`${driver} has no ${className}`);
const make = () => sqliteStoreGround((file) => new Database(file));

const meant = casesFor(sqliteTraits);
const failed: string[] = [];
for (const one of meant) {
  try {
    await runStoreCase(one, make);
  } catch (error) {
    failed.push(`${one.name}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}
const version = isBun ? (process.versions.bun ?? "") : process.versions.node;
console.log(JSON.stringify({ driver, version, passed: meant.length - failed.length, failed }));
