import Database from "libsql";
import type { SqliteHandle } from "../../packages/core/src/sqlite/driver.ts";
import { sqliteStoreGround, sqliteTraits } from "./sqlite-store-ground.ts";
import { storeContract } from "./store-contract.ts";

storeContract(
  "SQLite with libsql",
  () => sqliteStoreGround((file) => new Database(file) as SqliteHandle),
  sqliteTraits,
);
