import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Inbox, Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { addSample } from "../../src/inbox/pruning.ts";
import { memoryStore } from "../../src/memory/store.ts";
import type { UndatedNotice } from "../../src/notices/notice.ts";
import { openDatabase } from "../../src/sqlite/driver.ts";
import { sqliteInbox } from "../../src/sqlite/index.ts";
import { sqliteStore } from "../../src/sqlite/store.ts";
import { sleep } from "../../src/time/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const runner: Runner = {
  run: async () => ({ outcome: { kind: "done" }, changes: [], onWritten: () => {} }),
  firstHandler: () => null,
  handlersOf: () => [],
  notify: () => {},
};
const work = (inbox: Inbox) => inbox.work(runner, { deadlineMs: 10_000, limit: 1_000, concurrency: 1 });

describe("the samples of the clock", () => {
  it("count from the second one on, if they are an hour apart, and begin anew when the clock goes back", () => {
    let samples = addSample(null, 10 * DAY_MS);
    expect(samples.before).toBe(0);
    samples = addSample(samples, 10 * DAY_MS + HOUR_MS - 1);
    expect(samples).toEqual({ last: 10 * DAY_MS, before: 0 });
    samples = addSample(samples, 10 * DAY_MS + HOUR_MS);
    expect(samples).toEqual({ last: 10 * DAY_MS + HOUR_MS, before: 10 * DAY_MS });
    // Nine days ahead for one sample: what had expired before counts, and nothing else.
    const ahead = addSample(samples, 19 * DAY_MS + 2 * HOUR_MS);
    expect(ahead.before).toBe(10 * DAY_MS + HOUR_MS);
    expect(addSample(ahead, 19 * DAY_MS + 2 * HOUR_MS + 60_000)).toBe(ahead);
    const right = addSample(ahead, 10 * DAY_MS + 2 * HOUR_MS);
    expect(right).toEqual({ last: 10 * DAY_MS + 2 * HOUR_MS, before: 10 * DAY_MS + HOUR_MS });
    // Another process is a little behind.
    expect(addSample(right, right.last - 4_000)).toBe(right);
    expect(addSample(right, 9 * DAY_MS)).toEqual({ last: 9 * DAY_MS, before: 9 * DAY_MS });
  });
});

describe("pruning, when the clock is wrong", () => {
  /** An inbox on a file, with a clock that can be set. */
  function onFile() {
    const folder = mkdtempSync(join(tmpdir(), "payhooks-pruning-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "inbox.db");
    const clock = fakeClock();
    let sleptMs = 0;
    let aheadMs = 0;
    const environment = {
      ...environmentOf(clock),
      now: () => clock.now() + sleptMs + aheadMs,
      monotonic: () => clock.monotonic() + sleptMs,
    };
    return {
      clock,
      environment,
      store: sqliteStore(file, { clock: environment }),
      open: () => {
        const inbox = sqliteInbox(file, { clock: environment });
        onTestFinished(async () => void (await inbox.close({ graceMs: 0 })));
        return inbox;
      },
      async rows(): Promise<number> {
        const database = await openDatabase(file);
        try {
          return (database.prepare("SELECT count(*) AS n FROM records").get() as { n: number }).n;
        } finally {
          database.close();
        }
      },
      /** Time passes in which no timer fires, as on a machine that is suspended. */
      sleep: (ms: number) => {
        sleptMs += ms;
      },
      setAhead: (ms: number) => {
        aheadMs = ms;
      },
    };
  }

  it("forgets nothing in a moment in which the clock is nine days ahead, however often it runs", async () => {
    const { clock, open, sleep, setAhead } = onFile();
    const inbox = open();
    const events = Array.from({ length: 20 }, (_, n) => verifiedEvent(n, { signedAt: clock.now() }));
    for (const event of events) await inbox.accept(event);
    await work(inbox);
    for (let hours = 0; hours < 3; hours++) {
      sleep(HOUR_MS);
      await work(inbox);
    }
    setAhead(9 * DAY_MS);
    for (let times = 0; times < 5; times++) {
      await work(open());
      sleep(60_000);
    }
    setAhead(0);
    await work(open());
    for (const event of events) expect((await inbox.accept(event)).outcome).toBe("duplicate");
  });

  it("lets no copy run twice that arrives at such a moment: the copy is answered 503", async () => {
    const { clock, open, setAhead } = onFile();
    const inbox = open();
    const event = verifiedEvent(1, { signedAt: clock.now() });
    await inbox.accept(event);
    await work(inbox);
    setAhead(9 * DAY_MS);
    for (const one of [event, verifiedEvent(2, { signedAt: clock.now() })]) {
      await expect((async () => inbox.accept(one))()).rejects.toMatchObject({
        code: "ERR_INBOX_UNAVAILABLE",
        status: 503,
      });
    }
    setAhead(0);
    expect((await inbox.accept(event)).outcome).toBe("duplicate");
    expect((await inbox.accept(verifiedEvent(2, { signedAt: clock.now() }))).outcome).toBe("new");
  });

  it("deletes expired records in the end, also if every process lives for a moment only", async () => {
    const { clock, open, rows } = onFile();
    const first = open();
    await first.accept(verifiedEvent(1, { signedAt: clock.now() }));
    await work(first);
    await first.close({ graceMs: 0 });
    await clock.advance("30d");
    const after: number[] = [];
    for (const wait of ["0s", "30m", "31m"] as const) {
      await clock.advance(wait);
      const inbox = open();
      await work(inbox);
      await inbox.close({ graceMs: 0 });
      after.push(await rows());
    }
    expect(after).toEqual([1, 1, 0]);
  });

  it("deletes nothing that expires after the time that it is given", async () => {
    const { clock, store, setAhead, rows } = onFile();
    const inbox = createInbox(store, { clock: environmentOf(clock) });
    onTestFinished(async () => void (await inbox.close({ graceMs: 0 })));
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    await work(inbox);
    setAhead(30 * DAY_MS);
    expect(await store.prune?.(clock.now())).toBe(false);
    expect(await rows()).toBe(1);
    expect(await store.prune?.(clock.now() + 30 * DAY_MS)).toBe(false);
    expect(await rows()).toBe(0);
  });
});

describe("pruning a store", () => {
  /** An inbox on a store whose prunings take a while, and of which no further record can be deleted after some of them. */
  async function pruned(clock: FakeClock, prune: (before: number) => Promise<boolean>) {
    const calls: string[] = [];
    const memory = memoryStore({ clock });
    const store: RecordStore = {
      ...memory,
      endsWithProcess: false,
      async prune(before) {
        calls.push("prune");
        try {
          return await prune(before);
        } finally {
          calls.push("pruned");
        }
      },
      close: async () => void calls.push("closed"),
    };
    const inbox = createInbox(store, { clock: environmentOf(clock) });
    const notices: UndatedNotice[] = [];
    inbox.observe((notice) => notices.push(notice));
    await inbox.ready();
    return { inbox, calls, notices };
  }

  it("is not repeated by each call of `work` while nothing more can have expired", async () => {
    const clock = fakeClock();
    const answers = [false, true, true, false];
    const { inbox, calls } = await pruned(clock, async () => answers.shift() ?? false);
    const countPrunes = async (times: number): Promise<number> => {
      calls.length = 0;
      for (let n = 0; n < times; n++) await work(inbox);
      return calls.filter((call) => call === "prune").length;
    };
    expect(await countPrunes(10)).toBe(1);
    await clock.advance("1h");
    expect(answers).toEqual([]);
    expect(await countPrunes(10)).toBe(0);
    await clock.advance("1h");
    await inbox.close({ graceMs: 0 });
  });

  it("ends before the store is closed, and does not report what a close has broken off", async () => {
    const clock = fakeClock();
    const { inbox, calls, notices } = await pruned(clock, async () => {
      await sleep(clock, 500);
      if (calls.length > 3) throw new Error("the store is closed");
      return true;
    });
    await clock.advance("60s");
    expect(calls).toEqual(["prune"]);
    const closing = inbox.close({ graceMs: 10_000 });
    await clock.advance("499ms");
    expect(calls).toEqual(["prune"]);
    await clock.advance("1s");
    expect(await closing).toEqual({ unfinished: 0 });
    expect(calls).toEqual(["prune", "pruned", "closed"]);
    expect(notices).toEqual([]);
  });

  it("is broken off at the end of a close's grace, without a notice", async () => {
    const clock = fakeClock();
    const { inbox, calls, notices } = await pruned(clock, async () => {
      await sleep(clock, 5_000);
      throw new Error("the store is closed");
    });
    await clock.advance("60s");
    const closing = inbox.close({ graceMs: 1_000 });
    await clock.advance("10s");
    await closing;
    expect(calls).toEqual(["prune", "closed", "pruned"]);
    expect(notices).toEqual([]);
  });
});
