import { createRequire } from "node:module";
import { composeInbox, type IdempotencyStore, type Inbox, type Queue } from "@payhooks/core/inbox";
import { type RedisTarget, redisParts } from "@payhooks/core/redis";
import { type SqliteHandle, sqliteParts } from "@payhooks/core/sqlite";
import { Redis } from "ioredis";
import type { ChildConfig, InboxConfig } from "./child-config.ts";
import { withKillDuring } from "./kill-during.ts";

export interface Parts {
  readonly store: IdempotencyStore;
  readonly queue: Queue;
  readonly durability: Inbox["durability"];
}

type RedisConfig = Extract<InboxConfig, { readonly kind: "redis" }>;
type SqliteConfig = Extract<InboxConfig, { readonly kind: "sqlite" }>;

/** The store and the queue of the inbox under test: the one place that knows which inbox that is. */
export function partsOf(
  inbox: InboxConfig,
  {
    leaseMs,
    stallCheckMs,
    killDuring,
    commandTimeoutMs,
  }: Pick<ChildConfig, "leaseMs" | "stallCheckMs" | "killDuring"> & { readonly commandTimeoutMs?: number },
): Parts {
  if (inbox.kind === "sqlite") {
    const handle = withKillDuring(openHandle(inbox), killDuring);
    return { ...whenFree(() => sqliteParts(handle, { leaseMs })), durability: "host" };
  }
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  return redisParts(targetOf(inbox), {
    leaseMs,
    stallCheckMs,
    commandTimeoutMs,
    replicas: inbox.replicas ?? 0,
    logger: silent,
  });
}

export function openHandle({ file, driver }: Pick<SqliteConfig, "file" | "driver">): SqliteHandle {
  const Database = createRequire(driver)(driver) as new (path: string) => SqliteHandle;
  return new Database(file);
}

const nobody = new Int32Array(new SharedArrayBuffer(4));
/** As `sqliteInbox` does it, but without turns: whoever comes after a kill repairs the log, alone. */
function whenFree<T>(open: () => T): T {
  for (let tries = 0; ; tries++) {
    try {
      return open();
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ERR_INBOX_UNAVAILABLE" || tries > 500) throw error;
      Atomics.wait(nobody, 0, 0, 10);
    }
  }
}

/** An inbox of the test's own, to look at what the processes have left, on a slow machine as well. */
export function openInbox(inbox: InboxConfig): Inbox {
  const parts = partsOf(inbox, { leaseMs: 1_000, stallCheckMs: 1_000, commandTimeoutMs: 30_000 });
  return composeInbox({ ...parts, leaseMs: 1_000 });
}

function targetOf({ target }: RedisConfig): RedisTarget {
  if (typeof target === "string") return target;
  return new Redis({
    sentinels: [{ host: "127.0.0.1", port: target.sentinel }],
    name: "payhooks",
    lazyConnect: true,
  });
}
