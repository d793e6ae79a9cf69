/** Leases and fences (docs/concepts/inbox.md): one worker per transaction, and no write of a former one. */
import type { RecordStore, Swap } from "@payhooks/core/inbox";
import { expect } from "vitest";
import { indexOf } from "../../packages/core/src/inbox/record/index-of.ts";
import {
  type ContractCase,
  freezingAt,
  newGate,
  onFreshData,
  type Process,
  type Rig,
  withOverrides,
} from "./inbox-processes.ts";
import {
  endOf,
  finishHandler,
  newId,
  outcomes,
  type SampleRunner,
  sampleEvent,
  sampleRunner,
  startHandler,
  workAll,
} from "./sample-events.ts";
import { does } from "./write-names.ts";

/** A process whose runner starts a handler and then hangs until it is released. */
function hanging(rig: Rig): {
  readonly process: Process;
  readonly runner: SampleRunner;
  readonly started: Promise<void>;
  readonly wroteEnd: Promise<boolean>;
  release(): void;
} {
  const process = rig.start();
  const [started, free] = [newGate(), newGate()];
  let resolveWrote: (wroteEnd: boolean) => void = () => {};
  const wroteEnd = new Promise<boolean>((resolve) => {
    resolveWrote = resolve;
  });
  const runner = sampleRunner(async (run) => {
    await startHandler(run);
    started.open();
    await free.passed;
    resolveWrote(await finishHandler(run));
    return { kind: "done" };
  });
  return { process, runner, started: started.passed, wroteEnd, release: free.open };
}

const doubleRisks = ({ notices }: SampleRunner): readonly string[] =>
  notices.flatMap((notice) => (notice.type === "double-risk" ? [notice.why] : []));

export const leaseCases: readonly ContractCase[] = [
  onFreshData(
    "two slots of one transaction never overlap, and the one that waits counts no attempt",
    async (rig) => {
      const [one, other] = [hanging(rig), rig.start()];
      const id = newId();
      await one.process.inbox.accept(sampleEvent(id, rig.now(), { status: "PENDING" }));
      const working = workAll(one.process.inbox, one.runner);
      await one.started;
      // A mismatch is a slot of the same record: telling about it waits as well.
      const mismatch = sampleEvent(id, rig.now(), { status: "PENDING", fixedFacts: { referenceId: "o-2" } });
      const success = sampleEvent(id, rig.now());
      expect(await outcomes(other.inbox, [success, mismatch])).toEqual(["progress", "held"]);
      const runner = sampleRunner();
      expect(await workAll(other.inbox, runner)).toMatchObject({ ran: 0, failed: 0 });
      expect(runner.ran).toEqual([]);
      expect(await other.inbox.events.get(success.key + success.slot)).toMatchObject({
        state: "waiting",
        handlers: {},
      });
      one.release();
      expect(await working).toMatchObject({ failed: 0 });
      await workAll(other.inbox, runner);
      expect([...one.runner.ran, ...runner.ran].sort()).toEqual(
        [
          "PENDING",
          "SUCCESS",
          `onHeld ${JSON.stringify(["PENDING", [["referenceId", "o-2"]], "10"])}`,
        ].sort(),
      );
    },
  ),
  onFreshData("different transactions do overlap", async (rig) => {
    const [one, other] = [hanging(rig), rig.start()];
    await one.process.inbox.accept(sampleEvent(newId(), rig.now()));
    const working = workAll(one.process.inbox, one.runner);
    await one.started;
    await other.inbox.accept(sampleEvent(newId(), rig.now()));
    expect(await workAll(other.inbox, sampleRunner())).toMatchObject({ ran: 1 });
    one.release();
    await working;
  }),
  onFreshData("a lease that is renewed is kept for as long as the handler takes", async (rig) => {
    const [one, other] = [hanging(rig), rig.start()];
    const event = sampleEvent(newId(), rig.now());
    const { eventId } = await one.process.inbox.accept(event);
    const working = workAll(one.process.inbox, one.runner);
    await one.started;
    const runner = sampleRunner();
    for (let half = 0; half < 6; half++) {
      await rig.advance(rig.leaseMs / 2);
      expect(await other.inbox.runEvent(runner, eventId)).toEqual({ state: "running", ran: false });
    }
    expect(runner.ran).toEqual([]);
    expect(one.process.calls.filter((call) => call === "renew").length).toBeGreaterThanOrEqual(6);
    one.release();
    expect(await one.wroteEnd).toBe(true);
    expect(await working).toMatchObject({ ran: 1, failed: 0 });
    expect((await other.inbox.events.get(event.key + event.slot))?.state).toBe("done");
    expect(doubleRisks(one.runner)).toEqual([]);
  }),
  onFreshData(
    "the lease of a process that died lapses, not sooner, and another one takes the event",
    async (rig) => {
      const [one, other] = [hanging(rig), rig.start()];
      await one.process.inbox.accept(sampleEvent(newId(), rig.now()));
      void workAll(one.process.inbox, one.runner);
      await one.started;
      one.process.kill();
      const runner = sampleRunner();
      expect(await workAll(other.inbox, runner)).toMatchObject({ ran: 0 });
      await rig.advance(rig.leaseMs / 2);
      expect(await workAll(other.inbox, runner)).toMatchObject({ ran: 0 });
      await rig.advance(rig.leaseMs);
      expect(await workAll(other.inbox, runner)).toMatchObject({ ran: 1 });
      expect(runner.runs[0]?.input.handlerStates).toMatchObject({
        deposit: { state: "started", attempts: 1 },
      });
      expect(runner.runs[0]?.input.token).not.toBe(one.runner.runs[0]?.input.token);
    },
  ),
  onFreshData("every late write of a frozen process is lost, and changes nothing", async (rig) => {
    const [one, other] = [hanging(rig), rig.start()];
    const event = sampleEvent(newId(), rig.now());
    const eventId = event.key + event.slot;
    await one.process.inbox.accept(event);
    const working = workAll(one.process.inbox, one.runner);
    await one.started;
    one.process.freeze();
    await rig.advance(rig.leaseMs * 1.5);
    // The other one takes it, fails, and leaves it waiting for a retry.
    const runner = sampleRunner(async (run) => {
      await startHandler(run);
      const failed = {
        name: "deposit",
        kind: "failed",
        attempt: 2,
        delayMs: rig.leaseMs,
        error: "no",
      } as const;
      return endOf({ kind: "retry", delayMs: rig.leaseMs }, [failed]);
    });
    expect(await workAll(other.inbox, runner)).toMatchObject({ ran: 1, failed: 1 });
    const before = await other.inbox.events.get(eventId);
    expect(before).toMatchObject({
      state: "retrying",
      handlers: { deposit: { state: "failed", attempts: 2 } },
    });
    one.release();
    one.process.thaw();
    expect(await one.wroteEnd).toBe(false);
    await working;
    expect(await other.inbox.events.get(eventId)).toEqual(before);
    expect(doubleRisks(one.runner)).toEqual(["lease-lost"]);
    expect(one.runner.runs[0]?.cancellation.isCancelled).toBe(true);
  }),
  onFreshData(
    "a late handler change of a frozen process does not count in the run of its successor",
    async (rig) => {
      const frozen = freezingAt(rig, "before", "done");
      const other = hanging(rig);
      const event = sampleEvent(newId(), rig.now());
      await frozen.inbox.accept(event);
      const wroteEnd: boolean[] = [];
      const late = workAll(
        frozen.inbox,
        sampleRunner(async (run) => {
          await startHandler(run);
          wroteEnd.push(await finishHandler(run));
          return { kind: "done" };
        }),
      );
      await frozen.frozen;
      await rig.advance(rig.leaseMs * 1.5);
      const working = workAll(other.process.inbox, other.runner);
      await other.started;
      frozen.thaw();
      await late;
      expect(wroteEnd).toEqual([false]);
      expect(await other.process.inbox.events.get(event.key + event.slot)).toMatchObject({
        state: "running",
        handlers: { deposit: { state: "started", attempts: 2 } },
      });
      other.release();
      expect(await other.wroteEnd).toBe(true);
      await working;
    },
  ),
  onFreshData("a late finish of a frozen process does not end the run of its successor", async (rig) => {
    const frozen = freezingAt(rig, "before", "finish done");
    const other = hanging(rig);
    const event = sampleEvent(newId(), rig.now());
    await frozen.inbox.accept(event);
    const late = workAll(frozen.inbox, sampleRunner());
    await frozen.frozen;
    await rig.advance(rig.leaseMs * 1.5);
    const working = workAll(other.process.inbox, other.runner);
    await other.started;
    frozen.thaw();
    await late;
    expect((await other.process.inbox.events.get(event.key + event.slot))?.state).toBe("running");
    other.release();
    expect(await other.wroteEnd).toBe(true);
    await working;
    expect((await other.process.inbox.events.get(event.key + event.slot))?.state).toBe("done");
  }),
  onFreshData("a late renewal does not take the lease back from its successor", async (rig) => {
    const [one, other] = [hanging(rig), hanging(rig)];
    await one.process.inbox.accept(sampleEvent(newId(), rig.now()));
    const working = workAll(one.process.inbox, one.runner);
    await one.started;
    one.process.freeze();
    await rig.advance(rig.leaseMs * 1.5);
    const successor = workAll(other.process.inbox, other.runner);
    await other.started;
    one.process.thaw();
    await rig.advance(rig.leaseMs / 2);
    // The renewal that hung came back as lost: the handler is told, and the observer.
    expect(one.runner.runs[0]?.cancellation.isCancelled).toBe(true);
    expect(doubleRisks(one.runner)).toEqual(["lease-lost"]);
    other.release();
    expect(await other.wroteEnd).toBe(true);
    await successor;
    one.release();
    expect(await one.wroteEnd).toBe(false);
    await working;
  }),
  onFreshData(
    "while the store is out of reach a result is kept and written later; the handler runs once",
    async (rig) => {
      let [broken, isDown] = [0, false];
      const process = rig.start((moment, call) => {
        if (!isDown || moment !== "before" || call === "read" || call === "takeDue") return undefined;
        broken++;
        return "fail";
      });
      const event = sampleEvent(newId(), rig.now());
      await process.inbox.accept(event);
      let handled = 0;
      const runner = sampleRunner(async (run) => {
        await startHandler(run);
        handled++;
        isDown = true;
        await finishHandler(run);
        return { kind: "done" };
      });
      const working = workAll(process.inbox, runner);
      await rig.advance(rig.leaseMs * 2.5);
      expect(runner.notices.filter(({ type }) => type === "inbox-error").length).toBeGreaterThanOrEqual(1);
      isDown = false;
      await rig.until(working);
      expect(handled).toBe(1);
      expect(broken).toBeGreaterThan(3);
      expect((await process.inbox.events.get(event.key + event.slot))?.state).toBe("done");
      // Nobody else took it meanwhile; but for that this process could not know.
      expect(doubleRisks(runner)).toEqual(["lease-lost"]);
    },
  ),
  onFreshData(
    "a time that a wrong clock has put far away is pulled back: a retry runs after its delay, a lapsed lease after its length",
    async (rig) => {
      const wrong = rig.start(undefined, {
        store: (store) =>
          withOverrides<RecordStore>(store, {
            swap(items) {
              const late = items.map((item): Swap => {
                const record = structuredClone(item.record);
                if (record.lease !== null) record.lease.until += rig.leaseMs * 1_000;
                for (const { work } of Object.values(record.slots)) {
                  if (work !== null) work.dueAt += rig.leaseMs * 1_000;
                }
                return { ...item, record, index: indexOf(item.key, record) };
              });
              return store.swap(late);
            },
          }),
      });
      const [waiting, leased] = [sampleEvent(newId(), rig.now()), sampleEvent(newId(), rig.now())];
      // Not every store looks for such records; what one hands out has to be begun.
      const handedOut = [waiting.key, leased.key];
      const other = rig.start(undefined, {
        store: (store) =>
          withOverrides<RecordStore>(store, {
            async takeDue(limit, hideMs) {
              const key = limit.usual + limit.patient > 0 ? handedOut.shift() : undefined;
              if (key === undefined) return store.takeDue(limit, hideMs);
              const [found = null] = await store.read([key]);
              const records = found === null ? [] : [{ key, ...found }];
              return { records, left: { usual: 0, patient: 0 }, nextDueAt: null };
            },
          }),
      });
      await wrong.inbox.accept(waiting);
      void wrong.inbox.accept(leased, { runAtOnce: sampleRunner(() => new Promise<never>(() => {})) });
      await rig.advance(rig.leaseMs / 10);
      wrong.kill();
      const runner = sampleRunner();
      await workAll(other.inbox, runner);
      expect(runner.runs.map(({ input }) => input.id)).toEqual([waiting.id]);
      await rig.advance(rig.leaseMs * 1.1);
      await workAll(other.inbox, runner);
      expect(runner.runs.map(({ input }) => input.id)).toEqual([waiting.id, leased.id]);
    },
  ),
  onFreshData("a begin that fails is no attempt: the event is due again", async (rig) => {
    let broken = true;
    const process = rig.start((moment, call) =>
      broken && moment === "before" && does(call, "begin") ? "fail" : undefined,
    );
    const event = sampleEvent(newId(), rig.now());
    await process.inbox.accept(event);
    const runner = sampleRunner();
    const working = workAll(process.inbox, runner);
    await rig.advance(rig.leaseMs * 1.5);
    expect(runner.ran).toEqual([]);
    broken = false;
    await rig.until(working);
    await rig.advance(rig.leaseMs);
    await workAll(process.inbox, runner);
    expect(runner.runs.map(({ input }) => input.handlerStates)).toEqual([{}]);
  }),
];
