import type { SqliteHandle } from "@payhooks/core/sqlite";
import Database from "libsql";
import { casesOfSlowStores, inboxContract } from "./inbox-contract.ts";
import { sealed } from "./sealed.ts";
import { sqliteGround, sqliteKind } from "./sqlite-ground.ts";

const open = (file: string): SqliteHandle => new Database(file) as SqliteHandle;

inboxContract("SQLite with a seal", () => sealed(sqliteGround(open)), sqliteKind, {
  cases: casesOfSlowStores,
});
