import type { SqliteHandle } from "@payhooks/core/sqlite";
import Database from "libsql";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import { sealedFixture } from "./sealed-fixture.ts";
import { sqliteInboxFixture, sqliteKind } from "./sqlite-inbox-fixture.ts";

const open = (file: string): SqliteHandle => new Database(file) as SqliteHandle;

inboxContract("SQLite with a seal", () => sealedFixture(sqliteInboxFixture(open)), sqliteKind, {
  cases: casesOfSlowStores,
});
