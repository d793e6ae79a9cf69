import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, type Inbox, type Notice, type Receiver, type StoredEvent } from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import { createInbox } from "@payhooks/core/inbox";
import { silent } from "../../support/silent.ts";
import type { InboxConfig } from "./child-config.ts";
import type { TestEvent } from "./events.ts";
import { storeOf } from "./inbox.ts";
import { RedisServer } from "./redis-server.ts";
import type { Scope } from "./scope.ts";
import { keys, LONG_LEASE_MS } from "./system.ts";

/** A receiver in this process, and what it has noticed. */
export interface LocalReceiver {
  readonly receiver: Receiver;
  readonly notices: Notice[];
}

/** A fresh place for events. */
export type InboxMaker = (scope: Scope) => Promise<InboxConfig>;

/** A folder that goes with the test. */
export function newFolder(scope: Scope, parent: string = tmpdir()): string {
  const folder = mkdtempSync(join(parent, "payhooks-faults-"));
  return scope.add(folder, (path) => rmSync(path, { recursive: true, force: true }));
}

export function sqliteIn(folder: string): Extract<InboxConfig, { readonly kind: "sqlite" }> {
  const driver = createRequire(import.meta.url).resolve("libsql");
  return { kind: "sqlite", file: join(folder, "inbox.db"), driver };
}

/** The stores that outlive a process, each by its name. */
export const DURABLE: readonly (readonly [name: string, make: InboxMaker])[] = [
  ["SQLite", async (scope) => sqliteIn(newFolder(scope))],
  ["Redis", async (scope) => ({ kind: "redis", target: (await RedisServer.start(scope)).url })],
];

/** Starts a receiver with the handlers that `register` adds; closed with the scope, if not before. */
export async function startReceiver(
  scope: Scope,
  inbox: InboxConfig | Inbox,
  register: (receiver: Receiver) => void,
): Promise<LocalReceiver> {
  const notices: Notice[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: "kind" in inbox ? createInbox(storeOf(inbox, {}), { leaseMs: LONG_LEASE_MS, pollMs: 100 }) : inbox,
    logger: silent,
  });
  register(receiver);
  receiver.observe((notice) => void notices.push(notice));
  scope.add(receiver, (one) => one.close({ graceMs: 1_000 }));
  await receiver.start();
  return { receiver, notices };
}

/** Delivers an event; answers the status. */
export async function deliver(receiver: Receiver, { delivery }: TestEvent): Promise<number> {
  const { headers, rawBody } = delivery;
  const reply = await receiver.payments.receive({
    method: "POST",
    url: "/callbacks/pay",
    headers: { get: (name) => headers[name] ?? null },
    rawBody,
  });
  return reply.status;
}

/** Everything that is held. */
export async function heldOf(receiver: Receiver): Promise<readonly StoredEvent[]> {
  const held: StoredEvent[] = [];
  for await (const entry of eachEvent(receiver.events, { state: "held" })) held.push(entry);
  return held;
}
