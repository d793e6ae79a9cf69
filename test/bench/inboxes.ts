/** An inbox of each kind, with its store: what is measured on all of them side by side. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInbox, type Inbox, memoryStore, type RecordStore } from "@payhooks/core/inbox";
import { postgresStore } from "@payhooks/core/postgres";
import { redisStore } from "@payhooks/core/redis";
import { sqliteStore } from "@payhooks/core/sqlite";

export type InboxName = "memory" | "SQLite" | "Redis" | "PostgreSQL";

export interface OpenInbox {
  readonly inbox: Inbox;
  readonly store: RecordStore;
  end(): Promise<void>;
}

/** @param maxRecords finished records that memory keeps. */
export async function openInbox(
  name: InboxName,
  {
    redisUrl,
    postgresUrl,
    prefix = "payhooks",
    maxRecords,
    folder = mkdtempSync(join(tmpdir(), "payhooks-bench-")),
  }: {
    readonly redisUrl: string | null;
    readonly postgresUrl?: string | null;
    readonly prefix?: string;
    readonly maxRecords?: number;
    readonly folder?: string;
  },
): Promise<OpenInbox> {
  const file = name === "SQLite" ? join(folder, "inbox.db") : null;
  const store = (): RecordStore => {
    switch (name) {
      case "memory":
        return memoryStore({ maxUnfinished: 1_000_000, maxRecords });
      case "SQLite":
        return sqliteStore(file ?? undefined);
      case "Redis":
        return redisStore(redisUrl ?? undefined, { prefix });
      case "PostgreSQL":
        return postgresStore(postgresUrl ?? undefined);
    }
  };
  const opened = store();
  const inbox = createInbox(opened);
  await inbox.ready();
  return {
    inbox,
    store: opened,
    async end() {
      await inbox.close({ graceMs: 1_000 });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
