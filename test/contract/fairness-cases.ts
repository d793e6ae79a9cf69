/** Cases about fairness (docs/concepts/inbox.md, "Who runs what"): a crowd of events does not keep all others waiting. */
import { expect } from "vitest";
import type { VerifiedEvent } from "../../packages/core/src/inbox/record/event.ts";
import { type ContractCase, onFreshData, type Process, type Rig } from "./inbox-processes.ts";
import { newId, type SampleRunner, sampleEvent, sampleRunner, workAll } from "./sample-events.ts";

const PLACES = 16;
const FLOOD = 320;
const QUIET = 10;

/** Makes an event of a kind. */
type Kind = (rig: Rig) => VerifiedEvent;

const ofTenant =
  (tenant: string): Kind =>
  (rig) =>
    sampleEvent(newId(), rig.now(), { tenant });

const ofName =
  (name: string): Kind =>
  (rig) => ({ ...sampleEvent(newId(), rig.now()), name });

/** A runner whose handlers take their time. */
interface SlowRunner extends SampleRunner {
  readonly handlerMs: number;
  /** The ids of the events whose handlers were called, in order, and when. */
  readonly called: { readonly id: string; readonly at: number }[];
  readonly running: ReadonlySet<string>;
}

function slowRunner(rig: Rig, { clock }: Process): SlowRunner {
  const handlerMs = rig.leaseMs / 6;
  const called: SlowRunner["called"][number][] = [];
  const running = new Set<string>();
  const runner = sampleRunner(async ({ input: { id } }) => {
    called.push({ id, at: rig.now() });
    running.add(id);
    await new Promise<void>((resolve) => void clock.after(handlerMs, resolve));
    running.delete(id);
    return { kind: "done" };
  });
  return Object.assign(runner, { handlerMs, called, running });
}

/** Accepts so many events of a kind, all at once. Returns their ids. */
async function flood({ inbox }: Process, rig: Rig, kind: Kind, count: number): Promise<readonly string[]> {
  const events = Array.from({ length: count }, () => kind(rig));
  await rig.until(Promise.all(events.map((event) => inbox.accept(event, { deadlineMs: rig.leaseMs * 10 }))));
  return events.map(({ id }) => id);
}

/** Moves time on in small steps until it is so. */
async function until(rig: Rig, isSo: () => boolean): Promise<void> {
  for (let step = 0; step < 1_000 && !isSo(); step++) await rig.advance(rig.leaseMs / 50);
  expect(isSo()).toBe(true);
}

/**
 * Lets few events come beside a flood, at intervals of so many handlers' times. The wait that nine of ten do not exceed must be
 * short. Everything is run, once.
 */
async function quietBeside(rig: Rig, loud: Kind, quiet: Kind, interval: number): Promise<void> {
  const process = rig.start();
  const runner = slowRunner(rig, process);
  await process.inbox.run(runner, { concurrency: PLACES });
  const crowd = new Set(await flood(process, rig, loud, FLOOD));
  const accepted: { readonly id: string; readonly at: number; readonly before: number }[] = [];
  for (let n = 0; n < QUIET; n++) {
    const event = quiet(rig);
    accepted.push({ id: event.id, at: rig.now(), before: runner.called.length });
    const accepting = process.inbox.accept(event, { deadlineMs: rig.leaseMs * 10 });
    if (interval > 0) await rig.advance(runner.handlerMs * interval);
    await accepting;
  }
  await until(rig, () => runner.called.length >= FLOOD + QUIET && runner.running.size === 0);
  const waits = accepted.map(({ id, at, before }) => {
    const place = runner.called.findIndex((call) => call.id === id);
    // With real time, a busy machine delays everything. There, a handlers' time is what it takes the crowd to have all places
    // anew.
    const overtaken = runner.called.slice(before, place).filter((call) => crowd.has(call.id)).length;
    const calledAt = runner.called[place]?.at ?? Number.POSITIVE_INFINITY;
    return rig.timeTravel ? (calledAt - at) / runner.handlerMs : overtaken / PLACES;
  });
  waits.sort((a, b) => a - b);

  expect(waits[QUIET - 2]).toBeLessThan(3);
  expect(new Set(runner.called.map(({ id }) => id)).size).toBe(FLOOD + QUIET);
  expect(runner.called).toHaveLength(FLOOD + QUIET);
}

export const fairnessCases: readonly ContractCase[] = [
  onFreshData("few events of one tenant, one after another, wait for no flood of another tenant", (rig) =>
    quietBeside(rig, ofTenant("loud"), ofTenant("quiet"), 0.25),
  ),
  onFreshData("few events of one name, all at once, wait for no flood of another name", (rig) =>
    quietBeside(rig, ofName("settlement.approved"), ofName("DEPOSIT"), 0),
  ),
  onFreshData("a flood that is alone has all places", async (rig) => {
    const process = rig.start();
    const runner = slowRunner(rig, process);
    await process.inbox.run(runner, { concurrency: PLACES });
    await flood(process, rig, ofTenant("loud"), PLACES * 4);
    await until(rig, () => runner.running.size === PLACES);
    // So it is also when its first events, which are no crowd yet, have ended.
    await until(rig, () => runner.called.length > PLACES * 2 && runner.running.size === PLACES);
    await until(rig, () => runner.called.length === PLACES * 4 && runner.running.size === 0);
  }),
  onFreshData(
    "a flood has half of the places while others come, and a minute later all of them",
    async (rig) => {
      const process = rig.start();
      const runner = slowRunner(rig, process);
      await process.inbox.run(runner, { concurrency: PLACES });
      await flood(process, rig, ofTenant("loud"), FLOOD);
      await rig.advance(runner.handlerMs * 2.5);
      expect(runner.running.size).toBe(PLACES);
      await process.inbox.accept(ofTenant("quiet")(rig));
      for (let handler = 0; handler < 60_000 / runner.handlerMs - 3; handler++) {
        await rig.advance(runner.handlerMs);
        if (handler >= 2) expect(runner.running.size).toBe(PLACES / 2);
      }
      await rig.advance(runner.handlerMs * 4);
      expect(runner.running.size).toBe(PLACES);
    },
    { timeTravel: true },
  ),
  onFreshData("work takes from both lanes in turn", async (rig) => {
    const [busy, idle] = [rig.start(), rig.start()];
    const running = await busy.inbox.run(sampleRunner(), { concurrency: PLACES });
    running.pause();
    const loud = await flood(busy, rig, ofTenant("loud"), 40);
    await rig.advance(1);
    const quiet = await flood(busy, rig, ofTenant("quiet"), 6);
    const runner = sampleRunner();
    expect(await rig.until(workAll(idle.inbox, runner))).toMatchObject({ ran: 46, remaining: 0 });
    // The first of the flood were no crowd yet.
    const usual = [...loud.slice(0, PLACES / 4), ...quiet];
    const order = runner.runs.map(({ input }) => usual.includes(input.id));
    expect(order.slice(0, 2 * usual.length)).toEqual(usual.flatMap(() => [true, false]));
  }),
];
