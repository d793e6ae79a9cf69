/** The contract of every inbox on the SQLite driver that this runtime brings. Prints one line of JSON. */
import type { SqliteHandle } from "@payhooks/core/sqlite";
import { contractCases, isFor } from "../contract/inbox-contract.ts";
import { sqliteGround } from "../contract/sqlite-ground.ts";

const isBun = "Bun" in globalThis;
// Variables, so that the bundler leaves them to the runtime.
const [driver, className] = isBun ? ["bun:sqlite", "Database"] : ["node:sqlite", "DatabaseSync"];
const module = (await import(driver)) as Readonly<Record<string, new (file: string) => SqliteHandle>>;
const Database = module[className];
if (Database === undefined) throw new Error(`${driver} has no ${className}`);
const make = () => sqliteGround((file) => new Database(file));

const ground = make();
await ground.close();
const meant = contractCases.filter((one) => isFor(one, ground));
const failed: string[] = [];
for (const one of meant) {
  try {
    await one.run(make);
  } catch (error) {
    failed.push(`${one.name}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}
const version = isBun ? (process.versions.bun ?? "") : process.versions.node;
console.log(JSON.stringify({ driver, version, passed: meant.length - failed.length, failed }));
