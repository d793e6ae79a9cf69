import type { SqliteHandle } from "@payhooks/core/sqlite";
import Database from "libsql";
import { inboxContract } from "./inbox-contract.ts";
import { sqliteGround } from "./sqlite-ground.ts";

inboxContract("SQLite with libsql", () => sqliteGround((file) => new Database(file) as SqliteHandle));
