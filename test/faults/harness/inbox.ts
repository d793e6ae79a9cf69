import { composeInbox, type IdempotencyStore, type Inbox, type Queue } from "@payhooks/core/inbox";
import { type RedisTarget, redisParts } from "@payhooks/core/redis";
import { Redis } from "ioredis";
import type { InboxConfig } from "./child-config.ts";

export interface Parts {
  readonly store: IdempotencyStore;
  readonly queue: Queue;
  readonly durability: Inbox["durability"];
}

/** The store and the queue of the inbox under test: the one place that knows which inbox that is. */
export function partsOf(
  inbox: InboxConfig,
  { leaseMs, stallCheckMs }: { readonly leaseMs: number; readonly stallCheckMs: number },
): Parts {
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  return redisParts(targetOf(inbox), {
    leaseMs,
    stallCheckMs,
    replicas: inbox.replicas ?? 0,
    logger: silent,
  });
}

/** An inbox of the test's own, to look at what the processes have left. */
export function openInbox(inbox: InboxConfig): Inbox {
  return composeInbox({ ...partsOf(inbox, { leaseMs: 1_000, stallCheckMs: 1_000 }), leaseMs: 1_000 });
}

export function targetOf({ target }: InboxConfig): RedisTarget {
  if (typeof target === "string") return target;
  return new Redis({
    sentinels: [{ host: "127.0.0.1", port: target.sentinel }],
    name: "payhooks",
    lazyConnect: true,
  });
}
