import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInbox, type Inbox, type RecordStore } from "@payhooks/core/inbox";
import { mysqlStore } from "@payhooks/core/mysql";
import { postgresStore } from "@payhooks/core/postgres";
import { type RedisTarget, redisStore } from "@payhooks/core/redis";
import { type SqliteHandle, sqliteStore } from "@payhooks/core/sqlite";
import { Cluster, Redis } from "ioredis";
import { silent } from "../../support/silent.ts";
import type { ChildConfig, InboxConfig } from "./child-config.ts";
import { withKillDuring } from "./kill-during.ts";
import type { Scope } from "./scope.ts";

type RedisConfig = Extract<InboxConfig, { readonly kind: "redis" }>;
type SqliteConfig = Extract<InboxConfig, { readonly kind: "sqlite" }>;

/** A SQLite inbox in a folder of a test's own. */
export function newSqliteInbox(scope: Scope): SqliteConfig {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-sqlite-"));
  scope.add(folder, (path) => rmSync(path, { recursive: true, force: true }));
  const driver = createRequire(import.meta.url).resolve("libsql");
  return { kind: "sqlite", file: join(folder, "inbox.db"), driver };
}

/** The store of the inbox under test: the one place that knows which one that is. */
export function storeOf(
  inbox: InboxConfig,
  { killDuring, commandTimeoutMs }: Pick<ChildConfig, "killDuring"> & { readonly commandTimeoutMs?: number },
): RecordStore {
  if (inbox.kind === "sqlite") return sqliteStore(withKillDuring(openHandle(inbox), killDuring));
  if (inbox.kind === "postgres") {
    const { target, pooled } = inbox;
    return postgresStore(target, { pooled, statementTimeoutMs: commandTimeoutMs, logger: silent });
  }
  if (inbox.kind === "mysql") {
    return mysqlStore(inbox.target, { statementTimeoutMs: commandTimeoutMs, logger: silent });
  }
  return redisStore(targetOf(inbox), {
    commandTimeoutMs,
    replicas: inbox.replicas ?? 0,
    logger: silent,
  });
}

export function openHandle({ file, driver }: Pick<SqliteConfig, "file" | "driver">): SqliteHandle {
  const Database = createRequire(driver)(driver) as new (path: string) => SqliteHandle;
  return new Database(file);
}

/** An inbox of the test's own, to look at what the processes have left, on a slow machine as well. */
export function openInbox(inbox: InboxConfig): Inbox {
  return createInbox(storeOf(inbox, { commandTimeoutMs: 30_000 }));
}

function targetOf({ target }: RedisConfig): RedisTarget {
  if (typeof target === "string") return target;
  if ("cluster" in target)
    return new Cluster([{ host: "127.0.0.1", port: target.cluster }], { lazyConnect: true });
  return new Redis({
    sentinels: [{ host: "127.0.0.1", port: target.sentinel }],
    name: "payhooks",
    lazyConnect: true,
  });
}
