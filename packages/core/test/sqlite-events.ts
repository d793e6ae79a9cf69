import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FakeClock } from "@payhooks/core/testing";
import Database from "libsql";
import { onTestFinished } from "vitest";
import type { Held, Inbox, Lease, Runner, VerifiedEvent, WorkOptions } from "../src/inbox/inbox.ts";

/** The part of libsql that these tests use. */
export interface TestDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    get(...parameters: readonly unknown[]): unknown;
    all(...parameters: readonly unknown[]): unknown[];
    run(...parameters: readonly unknown[]): unknown;
  };
  close(): unknown;
}

/** Opens a file as a program of the user's own would. */
export function openFile(file: string, options: { readonly readonly?: boolean } = {}): TestDatabase {
  return new Database(file, options) as TestDatabase;
}

/** A disk in memory: what survives a death of the machine is nothing that a test can see. */
const MEMORY_DISK = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A path in a folder that goes with the test. */
export function newFile(name = "inbox.db"): string {
  const folder = mkdtempSync(join(MEMORY_DISK, "payhooks-sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}

/** What one statement says of a file, through a handle of its own. */
export function ask(file: string, sql: string): unknown {
  const database = openFile(file);
  try {
    return Object.values((database.prepare(sql).get() ?? {}) as object)[0];
  } finally {
    database.close();
  }
}

/** An inbox that is closed with the test; give the clock if it stands still. */
export function closing(inbox: Inbox, clock?: FakeClock): Inbox {
  onTestFinished(async () => {
    const closed = inbox.close({ graceMs: 0 });
    await clock?.advance(1);
    await closed;
  });
  return inbox;
}

export function eventOf(n: number, now: number, changes: Partial<VerifiedEvent> = {}): VerifiedEvent {
  return {
    key: n.toString(16).padStart(32, "0"),
    slot: "1".repeat(16),
    variantSlot: () => "2".repeat(16),
    id: `tx-${n}`,
    name: "DEPOSIT",
    status: "SUCCESS",
    rank: 1,
    identity: { referenceId: `o-${n}` },
    amount: "10",
    signedAt: now,
    fresh: true,
    retentionMs: 8 * 86_400_000,
    verdict: "run",
    detail: null,
    referenceKey: null,
    delivery: {
      flow: "payments",
      tenant: "",
      source: "callback",
      rawBody: new TextEncoder().encode(`{"payTxnId":"tx-${n}"}`),
      headers: {},
      keyId: null,
      receivedAt: now,
    },
    ...changes,
  };
}

export const eventIdOf = ({ key, slot }: VerifiedEvent): string => key + slot;

/** A runner whose handler does nothing but write down what it ran. */
export function writingRunner(): Runner & { readonly ran: string[]; readonly notices: unknown[] } {
  const ran: string[] = [];
  const notices: unknown[] = [];
  return {
    ran,
    notices,
    async run(lease: Lease) {
      await lease.step("main", { kind: "started" });
      ran.push(lease.data.id);
      await lease.step("main", { kind: "done" });
      return { kind: "done" };
    },
    notify: (notice) => notices.push(notice),
  };
}

export const EVERYTHING: WorkOptions = {
  deadlineMs: 60_000,
  limit: Number.POSITIVE_INFINITY,
  concurrency: 8,
};

export async function heldOf({ held }: Inbox): Promise<readonly Held[]> {
  const entries: Held[] = [];
  for await (const entry of held.list()) entries.push(entry);
  return entries;
}

/** Does `work` for 0 to `count` - 1, some at a time. */
export async function inLanes(lanes: number, count: number, work: (n: number) => unknown): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
