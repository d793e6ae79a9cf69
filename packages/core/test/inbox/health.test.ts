/** Tests what a question about health costs, and its answer while an inbox closes. */
import { rmSync } from "node:fs";
import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it, vi } from "vitest";
import type { Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { isCanary } from "../../src/inbox/record/canary.ts";
import { memoryStore } from "../../src/memory/store.ts";
import type { Loss } from "../../src/notices/notice.ts";
import { sqliteInbox, sqliteStore } from "../../src/sqlite/index.ts";
import { sleep } from "../../src/time/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { newFile, openFile, watched } from "../sqlite/database-files.ts";
import { verifiedEvent } from "../verified-event.ts";

const idle: Runner = {
  run: async () => ({ outcome: { kind: "done" }, changes: [], onWritten() {} }),
  firstHandler: () => null,
  handlersOf: () => [],
  notify() {},
};

describe("the health of an inbox", () => {
  it("is found by one canary, however many callers ask, and by another one some seconds later", async () => {
    const clock = fakeClock();
    const { handle, done } = watched(openFile(newFile()));
    const inbox = sqliteInbox(handle, { clock });
    await inbox.ready();
    const commits = (): number => done.filter((sql) => sql === "COMMIT").length;
    const before = commits();
    for (let turn = 0; turn < 5; turn++) {
      const all = await Promise.all(Array.from({ length: 20 }, () => inbox.health()));
      expect(all.every(({ ok }) => ok)).toBe(true);
    }
    // It is written, and removed.
    await vi.waitFor(() => expect(commits() - before).toBe(2));
    await clock.advance(4_000);
    expect(await inbox.health()).toMatchObject({ ok: true });
    expect(commits() - before).toBe(2);
    await clock.advance(2_000);
    expect(await inbox.health()).toMatchObject({ ok: true });
    await vi.waitFor(() => expect(commits() - before).toBe(4));
    await inbox.close({ graceMs: 0 });
  });

  it("is bad as soon as the check for losses finds that nothing can be written any more", async () => {
    const file = newFile();
    const [one, other] = [sqliteInbox(file), sqliteInbox(file)];
    await one.ready();
    await other.ready();
    expect(await other.health()).toMatchObject({ ok: true });
    for (const end of ["-wal", "-shm"]) rmSync(`${file}${end}`);
    expect(await other.health()).toMatchObject({
      ok: false,
      detail: expect.stringContaining("-wal or -shm"),
    });
    await one.close({ graceMs: 0 });
    await other.close({ graceMs: 0 });
  });

  it("is good again soon after an outage, although another process takes the canary", async () => {
    const clock = fakeClock();
    const file = newFile();
    const store: RecordStore = sqliteStore(file, { clock });
    const one = createInbox(store, { clock: environmentOf(clock) });
    const other = sqliteInbox(file, { clock });
    for (const inbox of [one, other]) {
      await inbox.ready();
      await inbox.run(idle, { concurrency: 1 });
    }
    store.takeDue = () => Promise.reject(new Error("away"));
    await clock.advance(1_000);
    expect(await one.health()).toMatchObject({ ok: false, failing: "take" });
    // It answers again, but the other process is always faster.
    store.takeDue = () => ({ records: [], left: { usual: 0, patient: 0 }, nextDueAt: null });
    await clock.advance(4_000);
    expect(await one.health()).toMatchObject({ ok: true, failing: null });
    await Promise.all([one.close({ graceMs: 0 }), other.close({ graceMs: 0 })]);
  });

  it("is bad while the inbox closes, and once it is closed", async () => {
    const inbox = sqliteInbox(newFile());
    expect(await inbox.health()).toMatchObject({ ok: true });
    await inbox.close({ graceMs: 0 });
    expect(await inbox.health()).toMatchObject({ ok: false, waiting: null });
  });

  it("is watched until the inbox closes, which leaves no canary in the store", async () => {
    const clock = fakeClock();
    const store: RecordStore = sqliteStore(newFile(), { clock });
    const { swap } = store;
    const keys = new Set<string>();
    // A store that takes 10 ms for each write.
    store.swap = async (items) => {
      for (const { key } of items) keys.add(key);
      await sleep(clock, 10);
      return swap.call(store, items);
    };
    const left: unknown[] = [];
    const { close } = store;
    store.close = async () => {
      left.push(...(await store.read([...keys])));
      return close.call(store);
    };
    const inbox = createInbox(store, { clock: environmentOf(clock) });
    await inbox.run(idle, { concurrency: 1 });
    await clock.advance(1);
    void inbox.health();
    await clock.advance(15);
    const closing = inbox.close({ graceMs: 1_000 });
    await clock.advance(100);
    await closing;
    expect(left).toEqual([null]);
  });

  it("does not wait for a store that never answers", async () => {
    const clock = fakeClock();
    const store: RecordStore = { ...memoryStore({ clock }), swap: () => new Promise(() => {}) };
    const asking = createInbox(store, { clock }).health();
    await clock.advance(2_001);
    expect(await asking).toMatchObject({
      ok: false,
      detail: expect.stringContaining("store has not answered within 2000 ms"),
    });
  });
});

describe("counts in the health", () => {
  it("are made once a second at most, however many callers ask", async () => {
    const clock = fakeClock();
    let counted = 0;
    const store: RecordStore = sqliteStore(newFile(), { clock });
    const { counts } = store;
    store.counts = () => {
      counted++;
      return counts.call(store);
    };
    const inbox = createInbox(store, { clock: environmentOf(clock) });
    await inbox.accept(verifiedEvent());
    for (let turn = 0; turn < 5; turn++) {
      const all = await Promise.all(Array.from({ length: 20 }, () => inbox.health()));
      expect(all.every(({ ok, waiting }) => ok && waiting === 1)).toBe(true);
    }
    expect(counted).toBe(1);
    await clock.advance(1_000);
    await inbox.health();
    expect(counted).toBe(2);
    await inbox.close({ graceMs: 0 });
  });

  it("are up to half a minute old if counting has become slow; after that they are left out", async () => {
    const clock = fakeClock();
    const store: RecordStore = sqliteStore(newFile(), { clock });
    const inbox = createInbox(store, { clock: environmentOf(clock) });
    await inbox.accept(verifiedEvent());
    expect(await inbox.health()).toMatchObject({ waiting: 1 });
    store.counts = () => new Promise<never>(() => {});
    const asked = async (afterMs: number) => {
      await clock.advance(afterMs);
      const asking = inbox.health();
      await clock.advance(1_000);
      return asking;
    };
    expect(await asked(1_000)).toMatchObject({ ok: true, waiting: 1 });
    expect(await asked(29_000)).toMatchObject({ ok: true, waiting: null, oldestDueMs: null });
    await inbox.close({ graceMs: 0 });
  });

  it("do not make the health bad if they take long, and nor does a check for losses", async () => {
    const clock = fakeClock();
    const store: RecordStore = {
      ...memoryStore({ clock }),
      findLoss: () => new Promise(() => {}),
    };
    const asking = createInbox(store, { clock }).health();
    await clock.advance(1_000);
    expect(await asking).toMatchObject({ ok: true, waiting: 0 });
  });

  it.each([
    ["fail", () => Promise.reject(new Error("it takes too long"))],
    ["take long", () => new Promise<never>(() => {})],
  ])("are left out if they %s, since an event could still be accepted", async (_, counts) => {
    const clock = fakeClock();
    const store: RecordStore = { ...memoryStore({ clock }), counts };
    const asking = createInbox(store, { clock }).health();
    await clock.advance(1_000);
    expect(await asking).toMatchObject({ ok: true, detail: null, waiting: null, oldestDueMs: null });
  });
});

describe("a loss", () => {
  it("is checked for every two seconds, reported once, and kept in the health", async () => {
    const clock = fakeClock();
    const found: (Loss | null)[] = [null, "replaced", null];
    let polls = 0;
    const store: RecordStore = {
      ...memoryStore({ clock }),
      findLoss: async () => {
        polls++;
        return found.shift() ?? null;
      },
    };
    const inbox = createInbox(store, { clock: environmentOf(clock) });
    const notices: unknown[] = [];
    inbox.observe((notice) => notices.push(notice));
    await inbox.ready();
    await clock.advance(2_000);
    expect(notices).toEqual([]);
    await clock.advance(2_000);
    const lostAt = clock.now();
    await clock.advance(4_000);
    expect(polls).toBe(4);
    expect(notices).toEqual([{ type: "data-lost", why: "replaced" }]);
    expect(await inbox.health()).toMatchObject({ ok: true, lostAt });
    await inbox.close({ graceMs: 0 });
    await clock.advance(10_000);
    expect(polls).toBe(5);
  });

  it("is still checked for every two seconds if events cannot be listed, which is tried once a minute", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    const [counts, canaries] = [{ checks: 0, lists: 0 }, new Set<string>()];
    let isAway = true;
    const store: RecordStore = {
      ...memory,
      immediate: false,
      endsWithProcess: false,
      findLoss: async () => {
        counts.checks++;
        return null;
      },
      swap(items) {
        for (const { key } of items) if (isCanary(key)) canaries.add(key);
        return memory.swap(items);
      },
      list: async (...args) => {
        counts.lists++;
        if (isAway) throw new Error("the statement takes too long");
        return memory.list(...args);
      },
    };
    const inbox = createInbox(store, { clock: environmentOf(clock) });
    await inbox.ready();
    await clock.advance("59s");
    expect(counts).toEqual({ checks: 29, lists: 1 });
    // An idle process sends one every five seconds or so.
    expect(canaries.size).toBeLessThan(20);
    await clock.advance("5s");
    expect(counts.lists).toBe(2);
    isAway = false;
    await clock.advance("1m");
    // It lists the unfinished events, and the finished ones.
    expect(counts.lists).toBe(4);
    await clock.advance("9m");
    expect(counts.lists).toBe(4);
    await clock.advance("1m");
    expect(counts.lists).toBe(6);
    await inbox.close({ graceMs: 0 });
  });

  it("is reported once the store answers again, if it was away during the check", async () => {
    const clock = fakeClock();
    let isAway = true;
    const store: RecordStore = {
      ...memoryStore({ clock }),
      async findLoss() {
        if (isAway) throw new Error("away");
        return "evicting";
      },
    };
    const inbox = createInbox(store, { clock });
    const notices: unknown[] = [];
    inbox.observe((notice) => notices.push(notice));
    await inbox.ready();
    await clock.advance(6_000);
    expect(notices).toEqual([]);
    isAway = false;
    await clock.advance(2_000);
    expect(notices).toEqual([{ type: "data-lost", why: "evicting" }]);
    await inbox.close({ graceMs: 0 });
  });
});
