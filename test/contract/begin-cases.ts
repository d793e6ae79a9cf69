/**
 * Cases about which process begins an event, and when: at its acceptance if a place is free, after the events that have waited,
 * and never twice.
 */
import { expect } from "vitest";
import {
  type ContractCase,
  type Gate,
  newGate,
  onFreshData,
  type Process,
  type Rig,
} from "./inbox-processes.ts";
import { depositOf, merchantOn, noticed } from "./merchant-receiver.ts";
import {
  newId,
  type SampleRunner,
  sampleEvent,
  sampleRunner,
  startHandler,
  workAll,
} from "./sample-events.ts";
import { does } from "./write-names.ts";

const isWrite = (call: string): boolean => !["open", "read", "takeDue", "counts", "list"].includes(call);

/** A runner whose every run waits to be let go, by the id of its event. */
function holding(): SampleRunner & { release(id: string): void; readonly running: readonly string[] } {
  const gates = new Map<string, Gate>();
  const gateOf = (id: string): Gate => {
    const gate = gates.get(id) ?? newGate();
    gates.set(id, gate);
    return gate;
  };
  const running: string[] = [];
  const runner = sampleRunner(async ({ input: { id } }) => {
    running.push(id);
    await gateOf(id).passed;
    running.splice(running.indexOf(id), 1);
    return { kind: "done" };
  });
  return Object.assign(runner, { running, release: (id: string) => gateOf(id).open() });
}

/** Waits until nothing is under way; no lease passes. */
const rest = (rig: Rig): Promise<void> => rig.advance(rig.leaseMs / 10);

/** Waits until handlers of these events run, and of no others: a store that is slow or busy takes its time. */
async function untilRunning(
  rig: Rig,
  runner: ReturnType<typeof holding>,
  ...ids: readonly string[]
): Promise<void> {
  for (let turn = 0; turn < 50; turn++) {
    await rest(rig);
    if (runner.running.join() === ids.join()) return;
  }
  expect(runner.running).toEqual(ids);
}

/** Waits until a process has made these writes since its first `before` calls, and makes no further ones. */
async function expectWrites(
  rig: Rig,
  { calls }: Process,
  before: number,
  expected: readonly string[],
): Promise<void> {
  const writes = (): readonly string[] => calls.slice(before).filter(isWrite);
  for (let turn = 0; turn < 50 && writes().length < expected.length; turn++) await rest(rig);
  await rest(rig);
  expect(writes()).toEqual(expected);
}

async function acceptOn(
  { inbox }: Process,
  rig: Rig,
): Promise<{ readonly id: string; readonly begun: boolean }> {
  const event = sampleEvent(newId(), rig.now());
  const { isBegun: begun } = await inbox.accept(event);
  return { id: event.id, begun };
}

/** Lets a process learn that its runs take long, so that it begins no more than it has places for. */
async function slowDown(process: Process, rig: Rig, runner: ReturnType<typeof holding>): Promise<void> {
  const [one, other] = [await acceptOn(process, rig), await acceptOn(process, rig)];
  // The other one waits for a place for so long that it is handed back.
  await rig.advance(600);
  for (const { id } of [one, other]) {
    runner.release(id);
    await rest(rig);
  }
  for (;;) {
    const { waiting, retrying, running } = await process.inbox.health();
    if (waiting === 0 && retrying === 0 && running === 0) return;
    await rest(rig);
  }
}

export const beginCases: readonly ContractCase[] = [
  ...[1, 2, 3].map((handlers) =>
    onFreshData(
      `an event with ${handlers} handler${handlers === 1 ? "" : "s"} is ${handlers + 1} writes, where there is a place`,
      async (rig) => {
        const process = rig.start();
        const merchant = merchantOn(
          process,
          (receiver) => {
            for (let n = 1; n <= handlers; n++) receiver.onDeposit(() => {}, { name: `handler-${n}` });
          },
          { run: "background" },
        );
        await merchant.receiver.start();
        await rest(rig);
        const before = process.calls.length;
        await merchant.deliver(depositOf(rig));
        await expectWrites(rig, process, before, [
          "accept+begin+started",
          ...Array.from({ length: handlers - 1 }, () => "done+started"),
          "finish done",
        ]);
        await rig.until(merchant.receiver.close());
      },
    ),
  ),
  onFreshData("a handler that must not run twice has a start of its own: one write more", async (rig) => {
    for (const options of [{ onCrash: "hold" }, { maxAttempts: 1 }] as const) {
      const process = rig.start();
      const merchant = merchantOn(process, (receiver) => receiver.onDeposit(() => {}, options), {
        run: "background",
      });
      await merchant.receiver.start();
      await rest(rig);
      const before = process.calls.length;
      await merchant.deliver(depositOf(rig));
      await expectWrites(rig, process, before, ["accept+begin", "started", "finish done"]);
    }
  }),
  onFreshData("where nobody runs events, an accept is one write and begins nothing", async (rig) => {
    const process = rig.start();
    expect(await acceptOn(process, rig)).toMatchObject({ begun: false });
    expect(process.calls.filter(isWrite)).toEqual(["accept"]);
  }),
  onFreshData(
    "without a free place nothing is begun at its acceptance; waiting events go first, in their order",
    async (rig) => {
      const process = rig.start();
      const runner = holding();
      const running = await process.inbox.run(runner, { concurrency: 1 });
      await rest(rig);
      await slowDown(process, rig, runner);
      const first = await acceptOn(process, rig);
      await rest(rig);
      const accepted = [first];
      for (let n = 0; n < 3; n++) {
        await rig.advance(1);
        accepted.push(await acceptOn(process, rig));
      }
      expect(accepted.map(({ begun }) => begun)).toEqual([true, false, false, false]);
      expect(runner.running).toEqual([first.id]);
      const fresh: string[] = [];
      for (const { id } of accepted) {
        runner.release(id);
        // While the place is free, and before anybody has looked, others arrive in every turn.
        const arriving: ReturnType<typeof acceptOn>[] = [];
        for (let turn = 0; turn < 12; turn++) {
          await new Promise((resolve) => setImmediate(resolve));
          arriving.push(acceptOn(process, rig));
        }
        for (const arrived of await Promise.all(arriving)) fresh.push(arrived.id);
        await rest(rig);
      }
      for (const id of fresh) runner.release(id);
      await rest(rig);
      await rig.until(running.stop());
      const order = runner.runs.map(({ input }) => input.id).slice(2);
      expect(order.slice(0, accepted.length)).toEqual(accepted.map(({ id }) => id));
    },
  ),
  onFreshData(
    "fresh events do not starve the events that other processes have accepted and left",
    async (rig) => {
      const [idle, busy] = [rig.start(), rig.start()];
      const waiting: Awaited<ReturnType<typeof acceptOn>>[] = [];
      for (let n = 0; n < 4; n++) waiting.push(await acceptOn(idle, rig));
      await rig.advance(1);
      const runner = sampleRunner(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return { kind: "done" };
      });
      const running = await busy.inbox.run(runner, { concurrency: 2 });
      const haveRun = (): number =>
        waiting.filter(({ id }) => runner.runs.some(({ input }) => input.id === id)).length;
      // However long a look takes on a busy machine, fresh events do not end before it.
      for (let n = 0; n < 1_000 && haveRun() < waiting.length; n++) {
        await acceptOn(busy, rig);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(haveRun()).toBe(waiting.length);
      await rest(rig);
      await rig.until(running.stop());
    },
    { only: "outlives-process" },
  ),
  onFreshData(
    "an event that another process accepts is found, although nothing announces it",
    async (rig) => {
      const [idle, busy] = [rig.start(), rig.start()];
      const runner = sampleRunner();
      const running = await busy.inbox.run(runner, { concurrency: 2 });
      await rest(rig);
      await acceptOn(idle, rig);
      await rig.advance(rig.leaseMs / 2);
      expect(runner.ran).toEqual(["SUCCESS"]);
      await running.stop();
    },
    { only: "stays-awake" },
  ),
  onFreshData("the end of one event of a transaction is followed by the next that is due", async (rig) => {
    const process = rig.start();
    const [free, last] = [newGate(), newGate()];
    const runner = sampleRunner(async ({ input: { status } }) => {
      if (status === "PENDING") await free.passed;
      else last.open();
      return { kind: "done" };
    });
    const running = await process.inbox.run(runner, { concurrency: 4 });
    await rest(rig);
    const id = newId();
    expect(await process.inbox.accept(sampleEvent(id, rig.now(), { status: "PENDING" }))).toMatchObject({
      outcome: "new",
      isBegun: true,
    });
    await rest(rig);
    expect(await process.inbox.accept(sampleEvent(id, rig.now()))).toMatchObject({
      outcome: "progress",
      isBegun: false,
    });
    await rest(rig);
    expect(runner.ran).toEqual(["PENDING"]);
    free.open();
    await rig.until(last.passed);
    expect(runner.ran).toEqual(["PENDING", "SUCCESS"]);
    await running.stop();
    // A busy machine may take so long that the lease is renewed.
    expect(process.calls.filter((call) => isWrite(call) && call !== "renew")).toEqual([
      "accept+begin",
      "accept",
      "finish done",
      "begin",
      "finish done",
    ]);
  }),
  onFreshData(
    "a process does not run a second time an event that it runs already, even when its lease has lapsed",
    async (rig) => {
      const process = rig.start((moment, call) =>
        moment === "before" && call === "renew" ? "fail" : undefined,
      );
      const free = newGate();
      const runner = sampleRunner(async (run) => {
        await startHandler(run);
        await free.passed;
        return { kind: "done" };
      });
      const running = await process.inbox.run(runner, { concurrency: 4 });
      await rest(rig);
      const event = sampleEvent(newId(), rig.now());
      await process.inbox.accept(event);
      await rig.advance(rig.leaseMs * 2.5);
      const before = process.calls.length;
      running.pause();
      running.resume();
      await rest(rig);
      // It has looked and found it due; a copy that is to be handled at once finds it running, too.
      expect(process.calls.slice(before)).toContain("takeDue");
      const copy = await rig.until(
        process.inbox.accept(event, { runAtOnce: runner, deadlineMs: rig.leaseMs }),
      );
      expect(await copy.whenHandled).toEqual({ state: "running", ran: false });
      const report = await rig.until(process.inbox.runEvent(runner, event.key + event.slot));
      expect(report).toEqual({ state: "running", ran: false });
      expect(runner.ran).toEqual(["SUCCESS"]);
      free.open();
      await rig.until(running.stop());
      expect(runner.ran).toEqual(["SUCCESS"]);
      expect((await process.inbox.events.get(event.key + event.slot))?.state).toBe("done");
    },
  ),
  onFreshData(
    "an event that is to be handled before its answer is begun even if every place is taken",
    async (rig) => {
      const process = rig.start();
      const runner = holding();
      const running = await process.inbox.run(runner, { concurrency: 1 });
      await rest(rig);
      await slowDown(process, rig, runner);
      const first = await acceptOn(process, rig);
      const left = await acceptOn(process, rig);
      expect([first.begun, left.begun]).toEqual([true, false]);
      await rest(rig);
      const event = sampleEvent(newId(), rig.now());
      const accepted = await process.inbox.accept(event, { runAtOnce: runner });
      expect(accepted).toMatchObject({ outcome: "new", isBegun: true });
      await rest(rig);
      expect([...runner.running].sort()).toEqual([first.id, event.id].sort());
      runner.release(event.id);
      expect(await rig.until(accepted.whenHandled ?? Promise.reject())).toEqual({ state: "done", ran: true });
      const copy = await process.inbox.accept(event, { runAtOnce: runner });
      expect(copy).toMatchObject({ outcome: "duplicate", isBegun: false });
      expect(await copy.whenHandled).toEqual({ state: "done", ran: false });
      runner.release(first.id);
      runner.release(left.id);
      await rig.until(running.stop());
    },
  ),
  onFreshData(
    "a copy that is to be handled begins an event that waits for its retry, and reports how that ended",
    async (rig) => {
      const [one, other] = [rig.start(), rig.start()];
      const event = sampleEvent(newId(), rig.now());
      const failing = sampleRunner(() => ({ kind: "retry", delayMs: rig.leaseMs * 100 }));
      const first = await one.inbox.accept(event, { runAtOnce: failing });
      expect(await rig.until(first.whenHandled ?? Promise.reject())).toEqual({ state: "waiting", ran: true });
      const runner = sampleRunner();
      const second = await other.inbox.accept(event, { runAtOnce: runner });
      expect(second).toMatchObject({ outcome: "duplicate", isBegun: true });
      expect(await rig.until(second.whenHandled ?? Promise.reject())).toEqual({ state: "done", ran: true });
      // An event that another process runs at this moment is reported as running.
      const [begun, free] = [newGate(), newGate()];
      const slow = sampleEvent(newId(), rig.now());
      const running = await one.inbox.accept(slow, {
        runAtOnce: sampleRunner(async () => {
          begun.open();
          await free.passed;
          return { kind: "done" };
        }),
      });
      await begun.passed;
      const copy = await other.inbox.accept(slow, { runAtOnce: runner });
      expect(await copy.whenHandled).toEqual({ state: "running", ran: false });
      free.open();
      await rig.until(running.whenHandled ?? Promise.reject());
    },
  ),
  onFreshData(
    "an event that its caller wants to run is left to the caller for the time that it named",
    async (rig) => {
      const process = rig.start();
      const runner = sampleRunner();
      const running = await process.inbox.run(runner, { concurrency: 4 });
      await rest(rig);
      const [one, other] = [sampleEvent(newId(), rig.now()), sampleEvent(newId(), rig.now())];
      for (const event of [one, other]) {
        expect(await process.inbox.accept(event, { delayMs: rig.leaseMs })).toMatchObject({ isBegun: false });
      }
      await rig.advance(rig.leaseMs / 2);
      expect(runner.ran).toEqual([]);
      expect(await process.inbox.runEvent(runner, one.key + one.slot)).toEqual({ state: "done", ran: true });
      await rig.advance(rig.leaseMs);
      expect(runner.runs.map(({ input }) => input.id)).toEqual([one.id, other.id]);
      await running.stop();
    },
  ),
  onFreshData(
    "while it is paused a process accepts events and begins none; running ones go on",
    async (rig) => {
      const process = rig.start();
      const runner = holding();
      const running = await process.inbox.run(runner, { concurrency: 4 });
      await rest(rig);
      const first = await acceptOn(process, rig);
      await untilRunning(rig, runner, first.id);
      running.pause();
      const second = await acceptOn(process, rig);
      expect(second.begun).toBe(false);
      runner.release(first.id);
      await rig.advance(rig.leaseMs);
      expect(runner.runs.map(({ input }) => input.id)).toEqual([first.id]);
      running.resume();
      await untilRunning(rig, runner, second.id);
      runner.release(second.id);
      await rig.until(running.stop());
    },
  ),
  ...(["the machine slept", "its answer came too late"] as const).map((why) =>
    onFreshData(
      `no handler is called under a lease that has run out meanwhile, since ${why}: that is no attempt`,
      async (rig) => {
        let aheadMs = 0;
        let isFirst = true;
        const attempts: number[] = [];
        const process = rig.start(
          (moment, call) => {
            if (moment !== "after" || !does(call, "begin") || !isFirst) return undefined;
            isFirst = false;
            if (why === "its answer came too late") return "freeze";
            aheadMs = rig.leaseMs * 1.1;
            return undefined;
          },
          { aheadMs: () => aheadMs },
        );
        const merchant = merchantOn(process, (receiver) =>
          receiver.onDeposit((_, { attempt }) => void attempts.push(attempt), { maxAttempts: 2 }),
        );
        const eventId = await merchant.deliver(depositOf(rig));
        const working = merchant.work();
        if (why === "its answer came too late") {
          await process.frozen;
          await rig.advance(rig.leaseMs * 1.1);
          expect(attempts).toEqual([]);
          process.thaw();
        }
        await rig.until(working);
        await rig.until(merchant.work());
        // The start that was written is taken back; only then another one is made.
        expect(process.calls.filter((call) => does(call, "undone"))).toHaveLength(1);
        expect(attempts).toEqual([1]);
        expect((await merchant.storedEvent(eventId))?.state).toBe("done");
        expect(await noticed(merchant, "double-risk")).toEqual([]);
      },
    ),
  ),
  onFreshData(
    "an event that was begun before a close, and not called yet, is handed back: that is no attempt, and another process has it at once",
    async (rig) => {
      const attempts: string[] = [];
      const register =
        (who: string): Parameters<typeof merchantOn>[1] =>
        (receiver) =>
          receiver.onDeposit((_, { attempt }) => void attempts.push(`${who} ${attempt}`), { maxAttempts: 2 });
      let closing: Promise<unknown> | null = null;
      const process = rig.start((moment, call) => {
        if (moment === "after" && does(call, "begin"))
          closing ??= process.inbox.close({ graceMs: rig.leaseMs });
        return undefined;
      });
      const merchant = merchantOn(process, register("one"), { run: "background" });
      await merchant.receiver.start();
      const eventId = await rig.until(merchant.deliver(depositOf(rig)));
      expect(await rig.until(closing ?? Promise.reject())).toEqual({ unfinished: 0 });
      const other = merchantOn(rig.start(), register("other"));
      await other.work();
      expect(attempts).toEqual(["other 1"]);
      expect((await other.storedEvent(eventId))?.state).toBe("done");
      expect(await noticed(other, "double-risk")).toEqual([]);
    },
    { only: "outlives-process" },
  ),
  onFreshData(
    "an event that is accepted while the process closes is not run by it, and not lost",
    async (rig) => {
      const [one, other] = [rig.start(), rig.start()];
      const runner = holding();
      await one.inbox.run(runner, { concurrency: 4 });
      await rest(rig);
      const first = await acceptOn(one, rig);
      await rest(rig);
      const closing = one.inbox.close({ graceMs: rig.leaseMs });
      expect(await acceptOn(one, rig)).toMatchObject({ begun: false });
      runner.release(first.id);
      await rig.until(closing);
      expect(runner.ran).toEqual(["SUCCESS"]);
      const successor = sampleRunner();
      expect(await workAll(other.inbox, successor)).toMatchObject({ ran: 1, remaining: 0 });
    },
    { only: "outlives-process" },
  ),
];
