import { storeContract } from "@payhooks/core/testing/store";
import Database from "libsql";
import { describe, it } from "vitest";
import type { SqliteHandle } from "../../packages/core/src/sqlite/handle.ts";
import { sqliteStoreFixture } from "./sqlite-store-fixture.ts";
import { sqliteTraits } from "./sqlite-store-traits.ts";

describe("the store contract: SQLite with libsql", () => {
  for (const { name, run } of storeContract(
    () => sqliteStoreFixture((file) => new Database(file) as SqliteHandle),
    sqliteTraits,
  ))
    it(name, run);
});
