import { fakeClock } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import type { Inbox, RunHandle, Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import type { RunOutcome } from "../../src/inbox/record/run-outcome.ts";
import { memoryStore } from "../../src/memory/store.ts";
import type { UndatedNotice } from "../../src/notices/notice.ts";
import { settle } from "../../src/testing/clock.ts";
import { verifiedEvent } from "../verified-event.ts";

const LEASE_MS = 30_000;
/** For how long a poll hides what it has found. */
const HIDDEN_MS = 5_000;

/** Calls that wait until the gate lets them through. */
class Gate {
  #waiting: (() => void)[] = [];
  #isOpen = true;
  async pass(): Promise<void> {
    if (!this.#isOpen) await new Promise<void>((go) => this.#waiting.push(go));
  }
  close(): void {
    this.#isOpen = false;
  }
  async open(): Promise<void> {
    this.#isOpen = true;
    for (const go of this.#waiting.splice(0)) go();
    await settle();
  }
}

/** A process whose polls and the answers to whose writes can be held up, and others beside it on the same data. */
function start() {
  const clock = fakeClock();
  const shared: RecordStore = {
    ...memoryStore({ clock }),
    immediate: false,
    endsWithProcess: false,
  };
  const [polls, answers] = [new Gate(), new Gate()];
  let hint = (): unknown => undefined;
  const slow: RecordStore = {
    ...shared,
    async onDue(wake) {
      hint = wake;
      return () => {};
    },
    async takeDue(limit, hideMs) {
      await polls.pass();
      return shared.takeDue(limit, hideMs);
    },
    async swap(items) {
      const results = await shared.swap(items);
      await answers.pass();
      return results;
    },
  };
  const inboxOn = (store: RecordStore): Inbox => createInbox(store, { leaseMs: LEASE_MS, clock });
  return {
    clock,
    polls,
    answers,
    inbox: inboxOn(slow),
    other: () => inboxOn(shared),
    /** Lets the process poll once more. The poll waits at its gate. */
    async poll(): Promise<void> {
      polls.close();
      hint();
      await settle();
    },
    event: (n: number) => verifiedEvent(n, { signedAt: clock.now() }),
    /** The events that another process is given now. */
    async ranElsewhere(): Promise<readonly string[]> {
      const runner = runnerOf(async () => ({ kind: "done" }));
      await inboxOn(shared).work(runner, { deadlineMs: 1_000, limit: 10, concurrency: 1 });
      return runner.ran;
    },
  };
}

function runnerOf(outcomeOf: (run: RunHandle) => Promise<RunOutcome>): Runner & {
  readonly ran: string[];
  readonly notices: UndatedNotice[];
} {
  const ran: string[] = [];
  const notices: UndatedNotice[] = [];
  return {
    ran,
    notices,
    run: async (run) => {
      ran.push(run.input.id);
      return { outcome: await outcomeOf(run), changes: [], onWritten: () => {} };
    },
    firstHandler: () => null,
    handlersOf: () => [],
    notify: (notice) => notices.push(notice),
  };
}

it("an event that a close hands back is due at once, even if a poll of the closing process has taken it since", async () => {
  const t = start();
  const free = new Gate();
  free.close();
  await t.inbox.accept(t.event(1));
  const runner = runnerOf(async (run) => {
    await free.pass();
    return run.mayCall() === "hand-back" ? { kind: "handed-back" } : { kind: "done" };
  });
  await t.inbox.run(runner, { concurrency: 1 });
  await settle();
  await t.poll();
  const closing = t.inbox.close({ graceMs: 10_000 });
  t.answers.close();
  // It is handed back, and the process does not know yet. Then its poll finds it.
  await free.open();
  await t.polls.open();
  await t.answers.open();
  expect(await closing).toEqual({ unfinished: 0 });
  expect(await t.ranElsewhere()).toEqual(["tx-1"]);
  expect([runner.ran, runner.notices]).toEqual([["tx-1"], []]);
});

it("an event that a pause hands back is due at once", async () => {
  const t = start();
  for (const n of [1, 2]) await t.inbox.accept(t.event(n));
  const runner = runnerOf(() => new Promise(() => {}));
  const running = await t.inbox.run(runner, { concurrency: 1 });
  await settle();
  await t.poll();
  t.answers.close();
  // The second one is begun, and waits for a place.
  running.pause();
  await settle();
  await t.polls.open();
  await t.answers.open();
  expect(await t.ranElsewhere()).toEqual(["tx-2"]);
  expect([runner.ran, runner.notices]).toEqual([["tx-1"], []]);
});

it("the next event of a record is due at once, also if work() runs the event before it", async () => {
  const t = start();
  await t.inbox.accept({ ...t.event(1), slot: "0".repeat(16), status: "PENDING", rank: 0 });
  await t.inbox.accept(t.event(2));
  const free = new Gate();
  free.close();
  const runner = runnerOf(async ({ input }) => {
    if (input.status === "PENDING") await free.pass();
    if (input.id === "tx-2") t.polls.close();
    return { kind: "done" };
  });
  const working = t.inbox.work(runner, { deadlineMs: 60_000, limit: 10, concurrency: 2 });
  await settle();
  await t.inbox.accept(t.event(1));
  t.answers.close();
  await free.open();
  // One lane has written that PENDING is done, and does not know yet. The other one polls, and is given the record.
  await t.polls.open();
  await t.answers.open();
  expect(await working).toMatchObject({ ran: 3, remaining: 0 });
  expect(runner.ran).toEqual(["tx-1", "tx-2", "tx-1"]);
});

it("an event that a closing process's last poll finds is left to others, even if it may have killed its process", async () => {
  const t = start();
  const dying = runnerOf(async (run) => {
    await run.write([{ name: "handler", kind: "started", attempt: 2 }]);
    return new Promise(() => {});
  });
  const dead = t.other();
  await dead.accept(t.event(1));
  void dead.work(dying, { deadlineMs: 1_000, limit: 1, concurrency: 1 });
  await settle();
  void dead.close({ graceMs: 0 });
  await t.clock.advance(LEASE_MS);
  await t.inbox.accept(t.event(2));
  t.polls.close();
  const runner = runnerOf(async () => ({ kind: "done" }));
  await t.inbox.run(runner, { concurrency: 2 });
  await settle();
  const closing = t.inbox.close({ graceMs: 10_000 });
  await t.polls.open();
  expect(await closing).toEqual({ unfinished: 0 });
  expect(await t.ranElsewhere()).toEqual(["tx-1", "tx-2"]);
  expect([runner.ran, runner.notices]).toEqual([[], []]);
});

it("a poll that ends after the grace of a close hides its events for a few seconds, and nothing more is asked of the store", async () => {
  const t = start();
  t.polls.close();
  await t.inbox.accept(t.event(1));
  const runner = runnerOf(async () => ({ kind: "done" }));
  await t.inbox.run(runner, { concurrency: 1 });
  await settle();
  const closing = t.inbox.close({ graceMs: 1_000 });
  await t.clock.advance("1s");
  expect(await closing).toEqual({ unfinished: 0 });
  await t.polls.open();
  expect(await t.ranElsewhere()).toEqual([]);
  await t.clock.advance(HIDDEN_MS);
  expect(await t.ranElsewhere()).toEqual(["tx-1"]);
  expect([runner.ran, runner.notices]).toEqual([[], []]);
});

/**
 * A process with four places whose handlers take 10 ms. Its places are full, two more are begun, and six more are taken: in the store
 * these still wait, and no poll finds them.
 */
async function withTaken() {
  const t = start();
  const busy = new Gate();
  const runner = runnerOf(async (run) => {
    await busy.pass();
    return run.mayCall() === "hand-back" ? { kind: "handed-back" } : { kind: "done" };
  });
  const running = await t.inbox.run(runner, { concurrency: 4 });
  busy.close();
  await t.inbox.accept(t.event(0));
  await settle();
  await t.clock.advance(10);
  await busy.open();
  busy.close();
  const accepted = [];
  for (let n = 1; n <= 12; n++) accepted.push(await t.inbox.accept(t.event(n)));
  // A poll that finds nothing is followed by none for 50 ms.
  await t.clock.advance(50);
  await settle();
  expect(await t.inbox.events.counts()).toMatchObject({ running: 6, waiting: 6 });
  expect(await t.ranElsewhere()).toEqual([]);
  return { ...t, busy, runner, running, last: accepted.at(-1)?.eventId ?? "" };
}

it("taken events are begun when a place is nearly free, in the order in which they came", async () => {
  const { busy, runner, inbox } = await withTaken();
  await busy.open();
  await settle();
  expect(await inbox.events.counts()).toMatchObject({ running: 0, waiting: 0 });
  expect(runner.ran).toEqual(Array.from({ length: 13 }, (_, n) => `tx-${n}`));
  expect(runner.notices).toEqual([]);
});

it("a pause hands back taken events, and begun ones that have no place", async () => {
  const { busy, running, ranElsewhere } = await withTaken();
  running.pause();
  await settle();
  expect(await ranElsewhere()).toHaveLength(8);
  await busy.open();
});

it("an event that gets no place within half a second is handed back", async () => {
  const { busy, clock, ranElsewhere } = await withTaken();
  for (let passed = 0; passed < 500; passed += 50) await clock.advance(50);
  await settle();
  expect(await ranElsewhere()).toHaveLength(8);
  await busy.open();
});

it("an event that was taken, and then is run by its id, runs once", async () => {
  const { busy, inbox, runner, last } = await withTaken();
  const asked = inbox.runEvent(runner, last);
  await busy.open();
  expect(await asked).toEqual({ state: "done", ran: true });
  await settle();
  expect(runner.ran).toHaveLength(13);
  expect(new Set(runner.ran).size).toBe(13);
});
