/** Taking work, telling about it, and ending (docs/concepts/inbox.md: run, work, close). */
import { expect } from "vitest";
import { type ContractCase, newGate, onFreshData, type Rig } from "./inbox-processes.ts";
import {
  finishHandler,
  newId,
  outcomes,
  sampleEvent,
  sampleRunner,
  startHandler,
  workAll,
} from "./sample-events.ts";

/** Accepts so many events of their own. */
async function acceptMany(rig: Rig, inbox: ReturnType<Rig["start"]>["inbox"], count: number): Promise<void> {
  for (let i = 0; i < count; i++) await inbox.accept(sampleEvent(newId(), rig.now()));
}

export const workCases: readonly ContractCase[] = [
  onFreshData(
    "work stops at its limit, and reports how many events ran, failed and remain, and when the next is due",
    async (rig) => {
      const { inbox } = rig.start();
      await acceptMany(rig, inbox, 7);
      let runs = 0;
      const runner = sampleRunner(() => {
        const kinds = ["done", "retry", "held", "done"] as const;
        const kind = kinds[runs++ % 4] ?? "done";
        if (kind === "retry") return { kind, delayMs: rig.leaseMs * 2 };
        return kind === "held" ? { kind, reason: "rejected", detail: null, onHeld: [] } : { kind };
      });
      const before = rig.now();
      const first = await inbox.work(runner, { deadlineMs: 60_000, limit: 4, concurrency: 2 });
      expect(first).toMatchObject({ ran: 4, failed: 2, remaining: 3 });
      expect(first.nextDueAt).toBeGreaterThanOrEqual(before + rig.leaseMs * 2);
      expect(first.nextDueAt).toBeLessThanOrEqual(rig.now() + rig.leaseMs * 2);
      runs = 3;
      const second = await inbox.work(sampleRunner(), { deadlineMs: 60_000, limit: 100, concurrency: 2 });
      expect(second).toMatchObject({ ran: 3, failed: 0, remaining: 0, nextDueAt: first.nextDueAt });
      await rig.advance(rig.leaseMs * 2.25);
      expect(await workAll(inbox, sampleRunner())).toEqual({
        ran: 1,
        failed: 0,
        remaining: 0,
        nextDueAt: null,
      });
    },
  ),
  onFreshData("work takes nothing more once its time is over, and waits for running events", async (rig) => {
    const { inbox } = rig.start();
    await acceptMany(rig, inbox, 5);
    const ends: number[] = [];
    // The second run begins long before the deadline, and ends after it, also where the store is slow.
    const runner = sampleRunner(async () => {
      await rig.advance(rig.leaseMs * (ends.length === 0 ? 0.1 : 0.9));
      ends.push(rig.now());
      return { kind: "done" };
    });
    const report = await inbox.work(runner, { deadlineMs: rig.leaseMs * 0.9, limit: 100, concurrency: 1 });
    expect(report).toMatchObject({ ran: 2, remaining: 3 });
    expect(ends).toHaveLength(2);
  }),
  onFreshData("work runs no more events at a time than its concurrency", async (rig) => {
    const { inbox } = rig.start();
    await acceptMany(rig, inbox, 9);
    let [running, most] = [0, 0];
    const runner = sampleRunner(async () => {
      most = Math.max(most, ++running);
      await rig.advance(rig.leaseMs / 10);
      running--;
      return { kind: "done" };
    });
    expect(await inbox.work(runner, { deadlineMs: 60_000, limit: 9, concurrency: 3 })).toMatchObject({
      ran: 9,
    });
    expect(most).toBe(3);
  }),
  onFreshData("runEvent runs one event at once, its backoff skipped, and tells its state", async (rig) => {
    const { inbox } = rig.start();
    const event = sampleEvent(newId(), rig.now());
    const { eventId } = await inbox.accept(event);
    const retry = sampleRunner(() => ({ kind: "retry", delayMs: rig.leaseMs * 100 }));
    expect(await inbox.runEvent(retry, eventId)).toEqual({ state: "waiting", ran: true });
    const runner = sampleRunner();
    await workAll(inbox, runner);
    expect(runner.ran).toEqual([]);
    expect(await inbox.runEvent(runner, eventId)).toEqual({ state: "done", ran: true });
    expect(runner.runs.map(({ input }) => input.isEarlyAllowed)).toEqual([true]);
    expect(await inbox.runEvent(runner, eventId)).toEqual({ state: "done", ran: false });
    expect(await inbox.runEvent(runner, "f".repeat(48))).toEqual({
      state: null,
      ran: false,
    });
    expect(runner.notices.filter(({ type }) => type === "record-missing")).toHaveLength(1);
  }),
  onFreshData("runEvent of an event that another process runs says so, and runs nothing", async (rig) => {
    const [one, other] = [rig.start(), rig.start()];
    const [begun, free] = [newGate(), newGate()];
    const { eventId } = await one.inbox.accept(sampleEvent(newId(), rig.now()));
    const working = workAll(
      one.inbox,
      sampleRunner(async () => {
        begun.open();
        await free.passed;
        return { kind: "done" };
      }),
    );
    await begun.passed;
    const runner = sampleRunner();
    expect(await other.inbox.runEvent(runner, eventId)).toEqual({ state: "running", ran: false });
    free.open();
    await working;
    expect(await other.inbox.runEvent(runner, eventId)).toEqual({ state: "done", ran: false });
    expect(runner.ran).toEqual([]);
  }),
  onFreshData(
    "in the background everything is run, no more at a time than told, and stop waits for running events",
    async (rig) => {
      const { inbox } = rig.start();
      const full = newGate();
      const free = newGate();
      const last = newGate();
      let [running, most, done] = [0, 0, 0];
      const runner = sampleRunner(async () => {
        most = Math.max(most, ++running);
        if (running === 3) full.open();
        await free.passed;
        running--;
        if (++done === 7) last.open();
        return { kind: "done" };
      });
      const background = await inbox.run(runner, { concurrency: 3 });
      await acceptMany(rig, inbox, 7);
      await full.passed;
      await rig.advance(rig.leaseMs / 20);
      expect({ most, done }).toEqual({ most: 3, done: 0 });
      free.open();
      await last.passed;
      await background.stop();
      expect({ most, done, running }).toEqual({ most: 3, done: 7, running: 0 });
      await acceptMany(rig, inbox, 1);
      expect(await workAll(inbox, sampleRunner())).toMatchObject({ ran: 1 });
    },
  ),
  onFreshData(
    "a run that waits without its place leaves its place to others, and comes back to a place",
    async (rig) => {
      const { inbox } = rig.start();
      const [isAside, turn, isRunning, free, isBack] = [
        newGate(),
        newGate(),
        newGate(),
        newGate(),
        newGate(),
      ];
      let [running, most, began] = [0, 0, 0];
      const order: string[] = [];
      const enter = (what: string): void => {
        order.push(what);
        most = Math.max(most, ++running);
      };
      const runner = sampleRunner(async (run) => {
        if (++began === 1) {
          const waiting = run.waitWithoutPlace(turn.passed);
          isAside.open();
          if (!(await waiting)) return { kind: "handed-back" };
          enter("first");
          isBack.open();
        } else {
          enter("second");
          isRunning.open();
          await free.passed;
        }
        running--;
        return { kind: "done" };
      });
      const background = await inbox.run(runner, { concurrency: 1 });
      await acceptMany(rig, inbox, 1);
      await isAside.passed;
      await acceptMany(rig, inbox, 1);
      await rig.until(isRunning.passed);
      turn.open();
      await rig.advance(rig.leaseMs / 20);
      expect(order).toEqual(["second"]);
      free.open();
      await rig.until(isBack.passed);
      expect({ order, most }).toEqual({ order: ["second", "first"], most: 1 });
      await rig.until(background.stop());
      expect(await workAll(inbox, sampleRunner())).toMatchObject({ ran: 0 });
    },
  ),
  onFreshData(
    "close hands back a run that waits without its place, and its lease is renewed until then",
    async (rig) => {
      const [one, other] = [rig.start(), rig.start()];
      const isAside = newGate();
      const runner = sampleRunner(async (run) => {
        // An earlier handler of the event was called.
        run.noteCall();
        const waiting = run.waitWithoutPlace(new Promise(() => {}));
        isAside.open();
        return { kind: (await waiting) ? "done" : "handed-back" };
      });
      await one.inbox.run(runner, { concurrency: 1 });
      await acceptMany(rig, one.inbox, 1);
      await isAside.passed;
      for (let third = 0; third < 4; third++) await rig.advance(rig.leaseMs / 3);
      expect(await workAll(other.inbox, sampleRunner())).toMatchObject({ ran: 0 });
      const unfinished = rig.endsWithProcess ? 1 : 0;
      expect(await rig.until(one.inbox.close({ graceMs: rig.leaseMs }))).toEqual({ unfinished });
      if (rig.endsWithProcess) return;
      const next = sampleRunner();
      expect(await workAll(other.inbox, next)).toMatchObject({ ran: 1 });
      expect(next.runs.map(({ input }) => input.handlerStates)).toEqual([{}]);
    },
  ),
  onFreshData("stop takes nothing more, and waits for running events", async (rig) => {
    const { inbox } = rig.start();
    const [begun, free] = [newGate(), newGate()];
    const runner = sampleRunner(async () => {
      begun.open();
      await free.passed;
      return { kind: "done" };
    });
    const background = await inbox.run(runner, { concurrency: 1 });
    await acceptMany(rig, inbox, 2);
    await begun.passed;
    let isStopped = false;
    const stopping = background.stop().finally(() => {
      isStopped = true;
    });
    await rig.advance(rig.leaseMs / 20);
    expect(isStopped).toBe(false);
    free.open();
    await rig.until(stopping);
    expect(runner.ran).toEqual(["SUCCESS"]);
    expect(await workAll(inbox, sampleRunner())).toMatchObject({ ran: 1 });
  }),
  onFreshData("in the background a retry comes when it is due", async (rig) => {
    const { inbox } = rig.start();
    const [first, second] = [newGate(), newGate()];
    let attempts = 0;
    const runner = sampleRunner(() => {
      if (++attempts > 1) {
        second.open();
        return { kind: "done" };
      }
      first.open();
      return { kind: "retry", delayMs: rig.leaseMs };
    });
    const background = await inbox.run(runner, { concurrency: 1 });
    await acceptMany(rig, inbox, 1);
    await first.passed;
    await rig.advance(rig.leaseMs / 2);
    expect(attempts).toBe(1);
    // Its end may have been written after some of that time: give it as much again, and more.
    for (let quarter = 0; quarter < 16 && attempts < 2; quarter++) await rig.advance(rig.leaseMs / 4);
    expect(attempts).toBe(2);
    await second.passed;
    await background.stop();
  }),
  onFreshData("health counts waiting and held events", async (rig) => {
    const { inbox } = rig.start();
    await inbox.accept(sampleEvent(newId(), rig.now(), { verdict: "malformed" }));
    await workAll(inbox, sampleRunner());
    await acceptMany(rig, inbox, 2);
    const { ok, detail, waiting, held } = await inbox.health();
    expect({ ok, detail }).toEqual({ ok: true, detail: null });
    expect({ waiting, held }).toEqual({ waiting: 2, held: 1 });
  }),
  onFreshData("ready can be called again", async (rig) => {
    const { inbox } = rig.start();
    await inbox.ready();
    await inbox.ready();
    expect(await outcomes(inbox, [sampleEvent(newId(), rig.now())])).toEqual(["new"]);
  }),
  onFreshData(
    "close waits for running events, and loses and repeats nothing that ends in time",
    async (rig) => {
      const [one, other] = [rig.start(), rig.start()];
      const [begun, free] = [newGate(), newGate()];
      const event = sampleEvent(newId(), rig.now());
      await one.inbox.accept(event);
      const runner = sampleRunner(async (run) => {
        await startHandler(run);
        begun.open();
        await free.passed;
        await finishHandler(run);
        return { kind: "done" };
      });
      await one.inbox.run(runner, { concurrency: 1 });
      await begun.passed;
      const closing = one.inbox.close({ graceMs: rig.leaseMs * 10 });
      expect(one.inbox.close({ graceMs: 1 })).toBe(closing);
      await rig.advance(rig.leaseMs / 2);
      expect((await other.inbox.events.get(event.key + event.slot))?.state).toBe("running");
      expect(runner.runs[0]?.cancellation.isCancelled).toBe(false);
      free.open();
      await rig.advance(rig.leaseMs / 2);
      expect(await closing).toEqual({ unfinished: 0 });
      expect((await other.inbox.events.get(event.key + event.slot))?.state).toBe("done");
      expect(runner.ran).toEqual(["SUCCESS"]);
    },
  ),
  onFreshData(
    "close reports a handler that still runs when the grace is over, and warns that it may run twice",
    async (rig) => {
      const one = rig.start();
      const begun = newGate();
      await one.inbox.accept(sampleEvent(newId(), rig.now()));
      const runner = sampleRunner(async (run) => {
        await startHandler(run);
        begun.open();
        return new Promise<never>(() => {});
      });
      await one.inbox.run(runner, { concurrency: 1 });
      await begun.passed;
      const closing = one.inbox.close({ graceMs: rig.leaseMs });
      await rig.advance(rig.leaseMs * 1.25);
      expect(await closing).toEqual({ unfinished: 1 });
      expect(runner.runs[0]?.cancellation.isCancelled).toBe(true);
      expect(runner.notices.flatMap((notice) => (notice.type === "double-risk" ? [notice.why] : []))).toEqual(
        ["closed-while-running"],
      );
    },
  ),
  onFreshData(
    "close hands back events without a started handler, for another process to run at once",
    async (rig) => {
      const [one, other] = [rig.start(), rig.start()];
      const [begun, free] = [newGate(), newGate()];
      const event = sampleEvent(newId(), rig.now());
      await one.inbox.accept(event);
      const runner = sampleRunner(async (run) => {
        begun.open();
        await free.passed;
        return run.mayCall() === "hand-back" ? { kind: "handed-back" } : { kind: "done" };
      });
      await one.inbox.run(runner, { concurrency: 1 });
      await begun.passed;
      const closing = one.inbox.close({ graceMs: rig.leaseMs * 10 });
      free.open();
      await rig.advance(rig.leaseMs / 10);
      expect(await closing).toEqual({ unfinished: 0 });
      const successor = sampleRunner();
      expect(await workAll(other.inbox, successor)).toMatchObject({ ran: 1 });
      expect(successor.runs[0]?.input.handlerStates).toEqual({});
    },
    { only: "outlives-process" },
  ),
  onFreshData(
    "close of an inbox that ends with its process runs everything that waits once more, and counts what is lost",
    async (rig) => {
      const { inbox } = rig.start();
      await acceptMany(rig, inbox, 3);
      let attempts = 0;
      const runner = sampleRunner((run) => {
        attempts++;
        // The first event is never done; RetryAfter(0) must not keep the process from ending.
        return run.input.id === runner.runs[0]?.input.id ? { kind: "retry", delayMs: 0 } : { kind: "done" };
      });
      await inbox.work(runner, { deadlineMs: 60_000, limit: 1, concurrency: 1 });
      await inbox.accept(sampleEvent(newId(), rig.now()));
      const before = attempts;
      const closing = inbox.close({ graceMs: rig.leaseMs });
      await rig.advance(rig.leaseMs / 2);
      expect(await closing).toEqual({ unfinished: 1 });
      expect(attempts - before).toBe(4);
    },
    { only: "ends-with-process" },
  ),
  onFreshData(
    "close of an inbox that ends with its process tries once more an event that was tried before its time a moment ago",
    async (rig) => {
      const { inbox } = rig.start();
      const { eventId } = await inbox.accept(sampleEvent(newId(), rig.now()));
      const runner = sampleRunner(() => ({ kind: "retry", delayMs: rig.leaseMs * 1_000 }));
      for (let copy = 0; copy < 3; copy++) await inbox.runEvent(runner, eventId);
      expect(runner.ran).toHaveLength(2);
      const closing = inbox.close({ graceMs: rig.leaseMs });
      await rig.advance(rig.leaseMs / 2);
      expect(await closing).toEqual({ unfinished: 1 });
      expect(runner.ran).toHaveLength(3);
    },
    { only: "ends-with-process" },
  ),
  onFreshData(
    "close of an inbox that ends with its process skips backoffs, and reports the events that it puts on hold",
    async (rig) => {
      const { inbox } = rig.start();
      await acceptMany(rig, inbox, 1);
      let attempts = 0;
      const runner = sampleRunner(() =>
        ++attempts === 1
          ? { kind: "retry", delayMs: rig.leaseMs * 1_000 }
          : { kind: "held", reason: "rejected", detail: null, onHeld: ["held:held"] },
      );
      await inbox.run(runner, { concurrency: 1 });
      await rig.advance(rig.leaseMs);
      expect(runner.ran).toEqual(["SUCCESS"]);
      const closing = inbox.close({ graceMs: rig.leaseMs });
      await rig.advance(rig.leaseMs / 2);
      // Held events in memory are lost as well.
      expect(await closing).toEqual({ unfinished: 1 });
      expect(runner.ran).toEqual(["SUCCESS", "SUCCESS", "onHeld SUCCESS"]);
    },
    { only: "ends-with-process" },
  ),
];
