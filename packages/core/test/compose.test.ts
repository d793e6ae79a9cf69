import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { composeInbox } from "../src/inbox/compose.ts";
import type { Ending, Runner, VerifiedEvent } from "../src/inbox/inbox.ts";
import { memoryInbox } from "../src/inbox/memory/index.ts";
import { memoryQueue } from "../src/inbox/memory/queue.ts";
import { memoryStore } from "../src/inbox/memory/store.ts";
import type { Happening } from "../src/notices.ts";

const LEASE_MS = 9_000;

function newEvent(signedAt: number, id = "tx"): VerifiedEvent {
  return {
    key: id.padStart(32, "0"),
    slot: "1".repeat(16),
    variantSlot: () => "2".repeat(16),
    id,
    name: "DEPOSIT",
    status: "SUCCESS",
    rank: 1,
    identity: {},
    amount: null,
    signedAt,
    fresh: true,
    retentionMs: 86_400_000,
    verdict: "run",
    detail: null,
    referenceKey: null,
    delivery: {
      flow: "payments",
      tenant: "",
      source: "callback",
      rawBody: new Uint8Array(),
      headers: {},
      keyId: null,
      receivedAt: 0,
    },
  };
}

function runnerOf(
  run: (lease: Parameters<Runner["run"]>[0]) => Promise<Ending>,
): Runner & { readonly notices: Happening[] } {
  const notices: Happening[] = [];
  return { run, notices, notify: (notice) => notices.push(notice) };
}

describe("leases of a composed inbox", () => {
  it("one timer renews all of them every third of a lease, and stops when nothing runs", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ environment: clock, maxRecords: 10, maxUnfinished: 10 });
    const renewed: number[] = [];
    const start = clock.now();
    const store = {
      ...memory,
      renew: (...args: Parameters<typeof memory.renew>) => {
        renewed.push(clock.now() - start);
        return memory.renew(...args);
      },
    };
    const inbox = composeInbox({
      store,
      queue: memoryQueue({ clock }),
      durability: "process",
      leaseMs: LEASE_MS,
      clock,
    });
    await inbox.accept(newEvent(start, "1"));
    await inbox.accept(newEvent(start, "2"));
    let release = (): void => {};
    const free = new Promise<void>((resolve) => {
      release = resolve;
    });
    const working = inbox.work(
      runnerOf(async () => {
        await free;
        return { kind: "done" };
      }),
      { deadlineMs: 60_000, limit: 2, concurrency: 2 },
    );
    await clock.advance(LEASE_MS);
    expect(renewed).toEqual([3_000, 3_000, 6_000, 6_000, 9_000, 9_000]);
    release();
    await working;
    await clock.advance(LEASE_MS * 3);
    expect(renewed).toHaveLength(6);
  });

  it("a store out of reach for a whole lease aborts the signal and warns, once a step has started", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ environment: clock, maxRecords: 10, maxUnfinished: 10 });
    let down = false;
    const store = {
      ...memory,
      renew: async (...args: Parameters<typeof memory.renew>) => {
        if (down) throw new Error("unreachable");
        return memory.renew(...args);
      },
    };
    const inbox = composeInbox({
      store,
      queue: memoryQueue({ clock }),
      durability: "process",
      leaseMs: LEASE_MS,
      clock,
    });
    await inbox.accept(newEvent(clock.now()));
    let aborted = -1;
    const start = clock.now();
    const runner = runnerOf(async (lease) => {
      await lease.step("deposit", { kind: "started" });
      await new Promise<void>((resolve) => {
        lease.cancellation.signal.addEventListener("abort", () => {
          aborted = clock.now() - start;
          resolve();
        });
      });
      return { kind: "done" };
    });
    const working = inbox.work(runner, { deadlineMs: 60_000, limit: 1, concurrency: 1 });
    await clock.advance(LEASE_MS / 3);
    down = true;
    await clock.advance(LEASE_MS * 2);
    await working;
    // Renewed at 3 s, so that it lapses at 12 s.
    expect(aborted).toBe(12_000);
    expect(runner.notices.filter(({ type }) => type === "double-risk")).toHaveLength(1);
  });
});

describe("the close of a composed inbox", () => {
  it("takes nothing more in work, and is the same close when called again", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    await inbox.accept(newEvent(clock.now(), "1"));
    await inbox.accept(newEvent(clock.now(), "2"));
    let runs = 0;
    const closings: Promise<unknown>[] = [];
    const runner = runnerOf(async () => {
      runs++;
      if (runs === 1) closings.push(inbox.close({ graceMs: 1_000 }));
      return { kind: "done" };
    });
    const report = await inbox.work(runner, { deadlineMs: 60_000, limit: 10, concurrency: 1 });
    await clock.advance("1s");
    closings.push(inbox.close({ graceMs: 5 }));
    expect(await Promise.all(closings)).toEqual([{ unfinished: 0 }, { unfinished: 0 }]);
    expect(report.ran).toBe(1);
    expect(runs).toBe(2);
  });

  it("gives an event that retries at once its last try, and ends", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    await inbox.accept(newEvent(clock.now()));
    let runs = 0;
    const runner = runnerOf(async () => {
      runs++;
      return { kind: "retry", delayMs: 0 };
    });
    await inbox.work(runner, { deadlineMs: 60_000, limit: 1, concurrency: 1 });
    const closing = inbox.close({ graceMs: 1_000 });
    await clock.advance("2s");
    expect(await closing).toEqual({ unfinished: 1 });
    expect(runs).toBe(2);
  });

  it("without any runner tells how much is lost", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    await inbox.accept(newEvent(clock.now()));
    const closing = inbox.close({ graceMs: 1_000 });
    await clock.advance("2s");
    expect(await closing).toEqual({ unfinished: 1 });
  });
});

describe("the health of a composed inbox", () => {
  it("says what is wrong when the store does not answer", async () => {
    const clock = fakeClock();
    const store = {
      ...memoryStore({ environment: clock, maxRecords: 10, maxUnfinished: 10 }),
      counts: async () => {
        throw Object.assign(new Error("unreachable"), { code: "EHOSTUNREACH" });
      },
    };
    const inbox = composeInbox({ store, queue: memoryQueue({ clock }), durability: "host", clock });
    expect(await inbox.health()).toEqual({
      ok: false,
      detail: "Error: EHOSTUNREACH",
      waiting: null,
      running: null,
      held: null,
    });
  });
});
