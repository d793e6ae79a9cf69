import { PayhooksError } from "@payhooks/core";
import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { RunHandle, Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore, Swap } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import type { RunOutcome } from "../../src/inbox/record/run-outcome.ts";
import { Records } from "../../src/inbox/write/records.ts";
import { memoryInbox } from "../../src/memory/index.ts";
import { memoryStore } from "../../src/memory/store.ts";
import type { UndatedNotice } from "../../src/notices/notice.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

const LEASE_MS = 9_000;

function runnerOf(
  outcomeOf: (run: RunHandle) => Promise<RunOutcome>,
): Runner & { readonly notices: UndatedNotice[] } {
  const notices: UndatedNotice[] = [];
  return {
    notices,
    run: async (run) => ({ outcome: await outcomeOf(run), changes: [], onWritten: () => {} }),
    firstHandler: () => null,
    handlersOf: () => [],
    notify: (notice) => notices.push(notice),
  };
}

/** A store that tells of each write that prolongs a lease, and may refuse it. */
function watched(store: RecordStore, renewing: () => void): RecordStore {
  const leases = new Map<string, string>();
  return {
    ...store,
    swap(items) {
      for (const { key, record } of items) {
        const token = record.lease?.token;
        if (token !== undefined && leases.get(key) === token) renewing();
        if (token !== undefined) leases.set(key, token);
      }
      return store.swap(items);
    },
  };
}

describe("the leases of an inbox", () => {
  it("end early if a stale store clock dated them, also if the process has slept since", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    let behindMs = 0;
    let sleptMs = 0;
    const store: RecordStore = {
      ...memory,
      // The process knows it by the monotonic clock, which stands still while the machine sleeps.
      now: () => clock.now() - behindMs,
      swap(items) {
        const answer = memory.swap(items);
        behindMs = 0;
        return answer;
      },
    };
    const environment = {
      now: () => clock.now() + sleptMs,
      monotonic: () => clock.monotonic(),
      after: (ms: number, callback: () => void) => clock.after(ms, callback),
    };
    const inbox = createInbox(store, { leaseMs: LEASE_MS, clock: environmentOf(environment) });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    const asked: string[] = [];
    const runner = runnerOf(async (run) => {
      for (const ms of [0, 5_999, 6_000]) {
        sleptMs = ms;
        asked.push(run.mayCall());
      }
      return { kind: "done" };
    });
    await clock.advance("5s");
    behindMs = 3_000;
    await inbox.work(runner, { deadlineMs: 1_000, limit: 1, concurrency: 1 });
    expect(asked).toEqual(["yes", "yes", "hand-back"]);
    await inbox.close({ graceMs: 0 });
  });

  it("are all renewed by one timer every third of a lease; it stops when nothing runs", async () => {
    const clock = fakeClock();
    const renewed: number[] = [];
    const start = clock.now();
    const store = watched(memoryStore({ clock }), () => renewed.push(clock.now() - start));
    const inbox = createInbox(store, { leaseMs: LEASE_MS, clock });
    await inbox.accept(verifiedEvent(1, { signedAt: start }));
    await inbox.accept(verifiedEvent(2, { signedAt: start }));
    let release = (): void => {};
    const free = new Promise<void>((resolve) => {
      release = resolve;
    });
    const runner = runnerOf(async () => {
      await free;
      return { kind: "done" };
    });
    const working = inbox.work(runner, { deadlineMs: 60_000, limit: 2, concurrency: 2 });
    await clock.advance(LEASE_MS);
    expect(renewed).toEqual([3_000, 3_000, 6_000, 6_000, 9_000, 9_000]);
    release();
    await working;
    await clock.advance(LEASE_MS * 3);
    expect(renewed).toHaveLength(6);
  });

  it("are renewed at the start of a run that has waited long for its place", async () => {
    const clock = fakeClock();
    const start = clock.now();
    const renewed: number[] = [];
    const store = watched(memoryStore({ clock }), () => renewed.push(clock.now() - start));
    const inbox = createInbox({ ...store, endsWithProcess: false }, { leaseMs: 510, clock });
    const runs: { readonly at: number; readonly begunAt: number }[] = [];
    const runner = runnerOf(async (run) => {
      // The process begins an event ahead of its place only once it has seen that handlers are quick.
      if (run.input.id === "tx-0") return { kind: "done" };
      runs.push({ at: clock.now() - start, begunAt: run.input.now - start });
      await new Promise<void>((resolve) => clock.after(745, resolve));
      return { kind: "done" };
    });
    const running = await inbox.run(runner, { concurrency: 1 });
    await inbox.accept(verifiedEvent(0, { signedAt: start }));
    await clock.advance(0);
    // The second event waits too long for a place and is handed back. The third one just gets it.
    for (const [at, ms] of [10, 250, 500].entries()) {
      await inbox.accept(verifiedEvent(at + 1, { signedAt: start }));
      await clock.advance(ms);
    }
    expect(runs).toEqual([
      { at: 0, begunAt: 0 },
      { at: 745, begunAt: 260 },
    ]);
    // All are renewed every 170 ms, so the next time is at 850. The lease of the third event ends at 770.
    expect(renewed).toEqual([170, 340, 510, 680, 745]);
    const stopped = running.stop();
    await clock.advance("5s");
    await stopped;
    await inbox.close({ graceMs: 0 });
  });

  it("are given up after a whole lease without an answer of the store: the handler's signal aborts, with one warning", async () => {
    const clock = fakeClock();
    let down = false;
    const store = watched(memoryStore({ clock }), () => {
      if (down) throw new Error("unreachable");
    });
    const inbox = createInbox(store, { leaseMs: LEASE_MS, clock });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    let aborted = -1;
    const start = clock.now();
    const runner = runnerOf(async (run) => {
      run.noteCall();
      await new Promise<void>((resolve) => {
        run.cancellation.signal.addEventListener("abort", () => {
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
    down = false;
    await clock.advance(LEASE_MS * 2);
    await working;
    // Renewed at 3 s, so that it lapses at 12 s; an attempt that is under way then is waited for.
    expect(aborted).toBeGreaterThanOrEqual(12_000);
    expect(aborted).toBeLessThan(12_000 + LEASE_MS / 3 + 1_000);
    expect(runner.notices.filter(({ type }) => type === "double-risk")).toHaveLength(1);
  });
});

describe("a run that fails outside of its handlers", () => {
  it("is reported and repeated later, keeps no place, and takes back the start of a handler that was not called", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    const before: unknown[] = [];
    const runner: ReturnType<typeof runnerOf> = {
      ...runnerOf(async (run) => {
        before.push(run.input.handlerStates.credit ?? null);
        if (before.length === 1) throw new Error("the store has not answered");
        return { kind: "done" };
      }),
      firstHandler: () => "credit",
      handlersOf: () => ["credit"],
    };
    const once = { deadlineMs: 60_000, limit: 1, concurrency: 1 };
    const dueAt = clock.now() + 5_000;
    expect(await inbox.work(runner, once)).toEqual({ ran: 1, failed: 1, remaining: 0, nextDueAt: dueAt });
    expect(runner.notices).toMatchObject([{ type: "inbox-error", during: "run" }]);
    await clock.advance("5s");
    expect(await inbox.work(runner, once)).toMatchObject({ ran: 1, failed: 0, nextDueAt: null });
    expect(before).toEqual([null, null]);
    expect(runner.notices.filter(({ type }) => type === "double-risk")).toEqual([]);
    expect(await inbox.close({ graceMs: 0 })).toEqual({ unfinished: 0 });
  });
});

describe("a run that always fails outside of its handlers", () => {
  it("is repeated more and more seldom, and at last every 5 minutes", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    const runner = runnerOf(async () => {
      throw new Error("the event cannot be read");
    });
    const delays: number[] = [];
    for (let n = 0; n < 8; n++) {
      const { nextDueAt } = await inbox.work(runner, { deadlineMs: 60_000, limit: 1, concurrency: 1 });
      delays.push((nextDueAt ?? 0) - clock.now());
      await clock.advance(delays[n] ?? 0);
    }
    expect(delays.map((ms) => ms / 1_000)).toEqual([5, 10, 20, 40, 80, 160, 300, 300]);
    expect(await inbox.close({ graceMs: 0 })).toMatchObject({ unfinished: 1 });
  });
});

describe("work", () => {
  it("waits for the handlers that run when nothing more can be taken, and then rejects", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    let taken = 0;
    const store: RecordStore = {
      ...memory,
      takeDue(...given) {
        if (++taken > 1) throw new Error("the store is away");
        return memory.takeDue(...given);
      },
    };
    const inbox = createInbox(store, { clock });
    for (const n of [1, 2]) await inbox.accept(verifiedEvent(n, { signedAt: clock.now() }));
    const order: string[] = [];
    const runner = runnerOf(async () => {
      await new Promise<void>((resolve) => clock.after(1_000, resolve));
      order.push("the handler has ended");
      return { kind: "done" };
    });
    const working = inbox
      .work(runner, { deadlineMs: 60_000, limit: 2, concurrency: 2 })
      .catch(({ code }: PayhooksError) => order.push(code));
    await clock.advance("2s");
    await working;
    expect(order).toEqual(["the handler has ended", "ERR_INBOX_UNAVAILABLE"]);
  });

  it("reports what it ran although nothing could be pruned", async () => {
    const clock = fakeClock();
    const store: RecordStore = {
      ...memoryStore({ clock }),
      sleeps: true,
      prune: () => Promise.reject(new Error("the store is away")),
    };
    const inbox = createInbox(store, { clock });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    const runner = runnerOf(async () => ({ kind: "done" }));
    expect(await inbox.work(runner, { deadlineMs: 60_000, limit: 2, concurrency: 1 })).toMatchObject({
      ran: 1,
    });
    expect(runner.notices).toMatchObject([{ type: "inbox-error", during: "prune" }]);
  });
});

describe("writes of one turn", () => {
  /** A store that is asked over a way, and remembers what it was asked. */
  function distant(): { readonly store: RecordStore; readonly sent: (readonly Swap[])[] } {
    const memory = memoryStore();
    const sent: (readonly Swap[])[] = [];
    const store: RecordStore = {
      ...memory,
      immediate: false,
      async swap(items) {
        sent.push(items);
        return memory.swap(items);
      },
    };
    return { store, sent };
  }

  it("are sent together, sorted by key, with no key twice, and each has its own answer", async () => {
    const { store, sent } = distant();
    const inbox = createInbox(store);
    await inbox.ready();
    const signedAt = Date.now();
    const events = [3, 1, 2, 1].map((n) => verifiedEvent(n, { signedAt }));
    const answers = await Promise.all(events.map((event) => inbox.accept(event)));
    expect(answers.map(({ outcome }) => outcome)).toEqual(["new", "new", "new", "duplicate"]);
    const keys = (sent[0] ?? []).map(({ key }) => key);
    expect(keys).toEqual(["1", "2", "3"].map((id) => id.padStart(32, "0")));
    expect(sent).toHaveLength(1);
  });

  it("are not all sent again if one answer is missing: only that one is", async () => {
    const { store, sent } = distant();
    const clock = fakeClock();
    let isCut = true;
    const cut: RecordStore = {
      ...store,
      now: () => clock.now(),
      swap: async (items) => {
        const results = await store.swap(items);
        return isCut ? results.slice(0, 1) : results;
      },
    };
    const inbox = createInbox(cut, { clock });
    await inbox.ready();
    const accepting = Promise.all(
      [1, 2].map((n) => inbox.accept(verifiedEvent(n, { signedAt: clock.now() }))),
    );
    await clock.advance(1);
    isCut = false;
    await clock.advance(1_000);
    expect((await accepting).map(({ outcome }) => outcome)).toEqual(["new", "new"]);
    expect(sent.map((items) => items.length)).toEqual([2, 1]);
    expect(sent[1]?.[0]).toBe(sent[0]?.[1]);
  });

  it("are all sent again if the swap rejects or throws, since any of them may have been made", async () => {
    for (const how of ["rejects", "throws"] as const) {
      const clock = fakeClock();
      const memory = memoryStore({ clock });
      let times = 0;
      const store: RecordStore = {
        ...memory,
        immediate: false,
        swap(items) {
          const made = memory.swap(items);
          if (times++ > 0) return made;
          if (how === "throws") throw new Error("cut off");
          return Promise.reject(new Error("cut off"));
        },
      };
      const inbox = createInbox(store, { clock });
      await inbox.ready();
      const accepting = Promise.resolve(inbox.accept(verifiedEvent(1, { signedAt: clock.now() })));
      await clock.advance(1_000);
      // Its own write, met again: it is new, and no copy.
      expect((await accepting).outcome).toBe("new");
      expect(times).toBe(2);
    }
  });

  it("that change one record are made one after the other, and a change that throws writes nothing", async () => {
    const no = new PayhooksError("ERR_HELD_FULL", "no");
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    const records = new Records({ ...memory, immediate: false }, clock, LEASE_MS);
    const key = "1".padStart(32, "0");
    const claimed = { flow: "payments", tenant: "", id: "0", statusSlot: null } as const;
    const empty = { ...claimed, isClosed: false, fixedFacts: {}, lease: null, slots: {}, signedAt: 0 };
    const count = (by: number, fails = false) =>
      records.change<number>({
        key,
        deadlineMs: 1_000,
        change: (record) => {
          const before = Number(record?.signedAt ?? 0);
          const signedAt = before + by;
          if (record !== null) record.signedAt = signedAt;
          if (fails) throw no;
          const expiresAt = clock.now() + 60_000;
          return { answer: signedAt, record: record ?? { ...empty, signedAt, expiresAt } };
        },
      });
    const asked = [count(1), count(10), count(100, true), count(1_000)];
    expect(await Promise.allSettled(asked)).toMatchObject([
      { value: { answer: 1 } },
      { value: { answer: 11 } },
      { reason: no },
      { value: { answer: 1_011 } },
    ]);
    expect(memory.read([key])[0]?.record).toMatchObject({ signedAt: 1_011 });
  });
});

describe("the close of an inbox", () => {
  it("lets work take no more events, and a second call is the same close", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    await inbox.accept(verifiedEvent(2, { signedAt: clock.now() }));
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

  it("makes work reject, and ask nothing more of the store, if its event ends after the grace", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    let isClosed = false;
    const lateCalls: string[] = [];
    const note = (name: string): void => {
      if (isClosed) lateCalls.push(name);
    };
    const store: RecordStore = {
      ...memory,
      immediate: false,
      endsWithProcess: false,
      takeDue: async (...asked) => {
        note("takeDue");
        return memory.takeDue(...asked);
      },
      readNote: async (...asked) => {
        note("readNote");
        return memory.readNote?.(...asked) ?? null;
      },
      async close() {
        isClosed = true;
      },
    };
    const inbox = createInbox(store, { leaseMs: LEASE_MS, clock });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    let endHandler = (): void => {};
    const runner = runnerOf(async () => {
      await new Promise<void>((resolve) => (endHandler = resolve));
      return { kind: "done" };
    });
    const working = inbox.work(runner, { deadlineMs: 60_000, limit: 10, concurrency: 1 });
    const outcome = working.then(
      () => "reported",
      (error: PayhooksError) => error.code,
    );
    await clock.advance(1);
    const closing = inbox.close({ graceMs: 500 });
    await clock.advance("1s");
    await closing;
    endHandler();
    await clock.advance(1);
    expect(await outcome).toBe("ERR_CLOSING");
    expect(lateCalls).toEqual([]);
  });

  it("ends after one more attempt of an event that retries at once", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
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

  it("asks nothing more of the store afterwards, whatever was still to be written or read", async () => {
    const clock = fakeClock();
    let calls = 0;
    let answer = (): void => {};
    const store: RecordStore = {
      ...memoryStore({ clock }),
      immediate: false,
      endsWithProcess: false,
      read: async () => {
        calls++;
        throw new Error("unreachable");
      },
      swap: async (items) => {
        calls++;
        if (calls === 1) await new Promise<void>((resolve) => (answer = resolve));
        return items.map(() => ({
          kind: calls % 2 === 0 ? "unknown" : "not-written",
          cause: new Error("broken"),
        }));
      },
    };
    const inbox = createInbox(store, { leaseMs: LEASE_MS, clock });
    await inbox.ready();
    const ends: string[] = [];
    const told = (error: Error): number => ends.push(error.message);
    for (const number of [1, 1, 2, 3]) {
      Promise.resolve(inbox.accept(verifiedEvent(number, { signedAt: clock.now() }))).catch(told);
      await clock.advance(10);
    }
    const closing = inbox.close({ graceMs: 1_000 });
    await clock.advance("1s");
    await closing;
    const before = calls;
    expect(before).toBeGreaterThan(3);
    answer();
    await clock.advance("1h");
    expect(calls).toBe(before);
    expect(ends).toHaveLength(4);
  });

  it("returns how many events are lost if there is no runner", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    const closing = inbox.close({ graceMs: 1_000 });
    await clock.advance("2s");
    expect(await closing).toEqual({ unfinished: 1 });
  });
});

describe("the health of an inbox", () => {
  it("says what is wrong when the store does not answer", async () => {
    const store: RecordStore = {
      ...memoryStore(),
      swap() {
        throw Object.assign(new Error("unreachable"), { code: "EHOSTUNREACH" });
      },
    };
    expect(await createInbox(store).health()).toEqual({
      ok: false,
      detail: "Error: EHOSTUNREACH",
      failing: "accept",
      lostAt: null,
      waiting: 0,
      retrying: 0,
      running: 0,
      held: 0,
      oldestDueMs: null,
    });
  });
});

describe("events of one turn", () => {
  it("start in the order in which they were accepted, whatever the order of their writes", async () => {
    const clock = fakeClock();
    const inbox = createInbox({ ...memoryStore({ clock }), immediate: false }, { clock });
    const started: string[] = [];
    const runner = runnerOf(async ({ input }) => {
      started.push(input.id);
      return { kind: "done" };
    });
    await inbox.run(runner, { concurrency: 40 });
    await clock.advance(1);
    const numbers = [5, 1, 4, 2, 3];
    await Promise.all(numbers.map((n) => inbox.accept(verifiedEvent(n, { signedAt: clock.now() }))));
    await clock.advance(1);
    expect(started).toEqual(numbers.map((n) => `tx-${n}`));
    await inbox.close({ graceMs: 0 });
  });
});

describe("a store that cannot be listened to", () => {
  it("is polled, and an inbox-error says that it cannot be listened to", async () => {
    const clock = fakeClock();
    const deaf: RecordStore = {
      ...memoryStore({ clock }),
      endsWithProcess: false,
      onDue: () => Promise.reject(new Error("no connection")),
    };
    const runner = runnerOf(async () => ({ kind: "done" }));
    const inbox = createInbox(deaf, { clock });
    await inbox.run(runner, { concurrency: 1 });
    expect(runner.notices).toMatchObject([{ type: "inbox-error", during: "listen" }]);
    await inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    await clock.advance(1);
    expect(await inbox.health()).toMatchObject({ waiting: 0, running: 0 });
    await inbox.close({ graceMs: 0 });
  });
});

describe("a poll for due events", () => {
  it("is not repeated at once if something is due that another session has locked", async () => {
    const clock = fakeClock();
    let polls = 0;
    const locked: RecordStore = {
      ...memoryStore({ clock }),
      endsWithProcess: false,
      takeDue: async () => {
        polls++;
        return { records: [], left: { usual: 1, patient: 0 }, nextDueAt: null };
      },
    };
    const inbox = createInbox(locked, { clock });
    await inbox.run(
      runnerOf(async () => ({ kind: "done" })),
      { concurrency: 1 },
    );
    await clock.advance("1s");
    expect(polls).toBeGreaterThan(10);
    expect(polls).toBeLessThanOrEqual(22);
    await inbox.close({ graceMs: 0 });
  });

  it("is not repeated for 50 ms by hints if it found nothing", async () => {
    const clock = fakeClock();
    let polls = 0;
    let hint = (): unknown => undefined;
    const memory = memoryStore({ clock });
    const hinted: RecordStore = {
      ...memory,
      endsWithProcess: false,
      takeDue: async (...args) => {
        polls++;
        // Hints arrive during a poll, too.
        hint();
        return memory.takeDue(...args);
      },
      onDue: async (wake) => {
        hint = wake;
        return () => {};
      },
    };
    const inbox = createInbox(hinted, { clock, pollMs: 10_000 });
    await inbox.run(
      runnerOf(async () => ({ kind: "done" })),
      { concurrency: 1 },
    );
    await clock.advance(1);
    for (let ms = 0; ms < 1_000; ms++) {
      hint();
      await clock.advance(1);
    }
    expect(polls).toBeGreaterThan(15);
    expect(polls).toBeLessThanOrEqual(22);
    await inbox.close({ graceMs: 0 });
  });

  it("ends before a closing inbox closes its store, and the events that it finds are handed back", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    const calls: string[] = [];
    let hold: Promise<void> | null = null;
    const slow: RecordStore = {
      ...memory,
      endsWithProcess: false,
      immediate: false,
      async takeDue(limit, hideMs) {
        const due = await memory.takeDue(limit, hideMs);
        await hold;
        calls.push("looked");
        return due;
      },
      async close() {
        calls.push("closed");
      },
    };
    const called: string[] = [];
    const runner = runnerOf(async (run) => {
      if (run.mayCall() !== "yes") return { kind: "handed-back" };
      called.push(run.input.id);
      return { kind: "done" };
    });
    const other = createInbox({ ...memory, endsWithProcess: false }, { clock });
    const { eventId } = await other.accept(verifiedEvent(1, { signedAt: clock.now() }));
    let release = (): void => {};
    hold = new Promise((resolve) => {
      release = resolve;
    });
    const inbox = createInbox(slow, { clock });
    await inbox.run(runner, { concurrency: 1 });
    await clock.advance(1);
    const closing = inbox.close({ graceMs: 1_000 });
    await clock.advance(1);
    expect(calls).toEqual([]);
    release();
    await clock.advance(10);
    expect(await closing).toEqual({ unfinished: 0 });
    expect(calls).toEqual(["looked", "closed"]);
    expect(called).toEqual([]);
    // It is free for others at once, not only when the lease is over.
    expect(await other.runEvent(runner, eventId)).toEqual({ state: "done", ran: true });
    await other.close({ graceMs: 0 });
  });
});

describe("a store with replicas", () => {
  it("confirms the claim of a reference before the event is written, and the event before the delivery is answered", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    const confirmed: string[][] = [];
    const replicated: RecordStore = {
      ...memory,
      replicated: async (records) => void confirmed.push(records.map(({ key }) => key)),
    };
    const inbox = createInbox(replicated, { clock });
    const referenceKey = "e".repeat(32);
    const event = verifiedEvent(1, { signedAt: clock.now(), referenceKey });
    for (const outcome of ["new", "duplicate"]) {
      expect(await inbox.accept(event)).toMatchObject({ outcome });
    }
    expect(confirmed).toEqual([[referenceKey], [event.key], [event.key]]);
    await inbox.close({ graceMs: 0 });
  });

  it.each([true, false])(
    "must confirm the end of an event before its claim may expire: %s",
    async (isConfirmed) => {
      const clock = fakeClock();
      const memory = memoryStore({ clock });
      const referenceKey = "e".repeat(32);
      let isAway = false;
      const replicated: RecordStore = {
        ...memory,
        replicated: async () => {
          if (isAway) throw new Error("no replica has it");
        },
      };
      const inbox = createInbox(replicated, { clock });
      const event = verifiedEvent(1, { signedAt: clock.now(), referenceKey });
      const { eventId } = await inbox.accept(event);
      isAway = !isConfirmed;
      const runner = runnerOf(async () => ({ kind: "done" }));
      expect(await inbox.runEvent(runner, eventId)).toEqual({ state: "done", ran: true });
      const [claim = null] = await memory.read([referenceKey]);
      expect(claim?.record).toMatchObject({ id: event.key, isClosed: isConfirmed });
      await inbox.close({ graceMs: 0 });
    },
  );
});
