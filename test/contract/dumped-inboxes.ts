/** Inboxes whose databases can be dumped and searched. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Inbox } from "@payhooks/core";
import type { Seal } from "@payhooks/core/inbox";
import { postgresInbox } from "@payhooks/core/postgres";
import { redisInbox } from "@payhooks/core/redis";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { postgresBin } from "../../scripts/postgres-server.mjs";
import { openHandle } from "../faults/harness/inbox.ts";
import { PostgresServer } from "../faults/harness/postgres-server.ts";
import { newFolder, sqliteIn } from "../faults/harness/receivers.ts";
import { RedisServer } from "../faults/harness/redis-server.ts";
import { type Scope, until } from "../faults/harness/scope.ts";
import { silent } from "../support/silent.ts";

/** An inbox, and everything that its database keeps, as text. */
export interface DumpedInbox {
  /** The inbox, as another process opens it. */
  open(seal?: Seal): Inbox;
  dump(): Promise<string>;
}

/** Inboxes by what is searched. */
export type DumpedInboxes = Readonly<Record<string, (scope: Scope) => Promise<DumpedInbox>>>;

export const DUMPED_INBOXES: DumpedInboxes = {
  "the file of SQLite and its log, after a checkpoint": async (scope) => {
    const place = sqliteIn(newFolder(scope));
    return {
      open: (seal) => sqliteInbox(place.file, { seal }),
      async dump() {
        const handle = openHandle(place);
        handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        handle.close();
        return [place.file, `${place.file}-wal`].map((file) => readFileSync(file, "latin1")).join("\n");
      },
    };
  },
  "a dump of PostgreSQL": async (scope) => {
    const { url } = await PostgresServer.start(scope);
    const dump = promisify(execFile);
    return {
      open: (seal) => postgresInbox(url, { logger: silent, seal }),
      dump: async () => (await dump(join(postgresBin() ?? "", "pg_dump"), [url])).stdout,
    };
  },
  "the append-only file of Redis, after it was written anew": async (scope) => {
    // Compressed, a text would not be found.
    const redis = await RedisServer.start(scope, { extra: ["--rdbcompression", "no"] });
    const [, folder] = (await redis.tell("CONFIG", "GET", "dir")) as readonly [string, string];
    return {
      open: (seal) => redisInbox(redis.url, { logger: silent, seal }),
      async dump() {
        const before = await redis.info("aof_rewrites");
        await redis.tell("BGREWRITEAOF");
        await until(
          "the file is written anew",
          async () =>
            (await redis.info("aof_rewrites")) !== before &&
            (await redis.info("aof_rewrite_in_progress")) === "0" &&
            (await redis.info("aof_last_bgrewrite_status")) === "ok",
        );
        const files = join(folder, "appendonlydir");
        const manifest = readFileSync(join(files, "appendonly.aof.manifest"), "utf8");
        const names = [...manifest.matchAll(/^file (\S+) seq \d+ type [bi]/gm)];
        return names.map(([, name = ""]) => readFileSync(join(files, name), "latin1")).join("\n");
      },
    };
  },
};
