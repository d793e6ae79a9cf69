/** Whatever becomes of runs, each gives its place back: afterwards a process runs as many events at one time as before. */
import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import type { Inbox, RunEnd, RunHandle, Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import type { RunOutcome } from "../../src/inbox/record/run-outcome.ts";
import { memoryStore } from "../../src/memory/store.ts";
import { newSeed, seededRandom } from "../../src/testing/store/random.ts";
import { sleep } from "../../src/time/clock.ts";
import { verifiedEvent } from "../verified-event.ts";

const CONCURRENCY = 4;
const EVENTS = 60;
const HISTORIES = 12;

/** A store that is slow and fails now and then, until it is healed. */
function troubled(clock: FakeClock, random: () => number): { store: RecordStore; heal: () => void } {
  const memory = memoryStore({ clock });
  let isIll = true;
  const call = async <T>(make: () => T): Promise<Awaited<T>> => {
    if (isIll && random() < 0.5) await sleep(clock, random() * 400);
    if (isIll && random() < 0.1) throw new Error("the store is away");
    const answer = await make();
    if (isIll && random() < 0.1) throw new Error("the answer is lost");
    return answer;
  };
  const store: RecordStore = {
    ...memory,
    immediate: false,
    endsWithProcess: false,
    read: (recordKeys) => call(() => memory.read(recordKeys)),
    swap: (items) => call(() => memory.swap(items)),
    takeDue: (limit, hideMs) => call(() => memory.takeDue(limit, hideMs)),
  };
  return {
    store,
    heal: () => {
      isIll = false;
    },
  };
}

/** A runner whose runs end in every way: at once or late, with a failure, held, handed back, or with an error of the runner itself. */
function unsteady(clock: FakeClock, random: () => number): Runner {
  const outcomes: readonly RunOutcome[] = [
    { kind: "done" },
    { kind: "done" },
    { kind: "retry", delayMs: 100 },
    { kind: "handed-back", delayMs: 50 },
    { kind: "held", reason: "rejected", detail: null, onHeld: [] },
  ];
  return {
    firstHandler: () => null,
    handlersOf: () => [],
    notify: () => {},
    async run(run: RunHandle): Promise<RunEnd> {
      if (random() < 0.3) await sleep(clock, random() * 600);
      if (random() < 0.2) await run.waitWithoutPlace(sleep(clock, random() * 400));
      if (random() < 0.1) throw new Error("the runner fails");
      const outcome = outcomes[Math.floor(random() * outcomes.length)] as RunOutcome;
      return { outcome, changes: [], onWritten: () => {} };
    },
  };
}

/** How many events run at one time when all wait for each other. */
async function mostAtOneTime(inbox: Inbox, clock: FakeClock): Promise<number> {
  let running = 0;
  let release = (): void => {};
  const gate = new Promise<void>((open) => {
    release = open;
  });
  const runner: Runner = {
    firstHandler: () => null,
    handlersOf: () => [],
    notify: () => {},
    async run() {
      running++;
      await gate;
      return { outcome: { kind: "done" }, changes: [], onWritten: () => {} };
    },
  };
  await inbox.run(runner, { concurrency: CONCURRENCY });
  for (let n = 0; n < 3 * CONCURRENCY; n++) {
    await inbox.accept(verifiedEvent(1_000 + n, { signedAt: clock.now() }));
  }
  await clock.advance("2s");
  const most = running;
  release();
  await clock.advance("1m");
  expect(running).toBe(3 * CONCURRENCY);
  return most;
}

it("after runs that failed, waited, were handed back or lost their store, all places are free again", async () => {
  const seed = newSeed("places");
  for (let history = 0; history < HISTORIES; history++) {
    const clock = fakeClock();
    const random = seededRandom(seed + history);
    const { store, heal } = troubled(clock, random);
    const inbox = createInbox(store, { clock, leaseMs: 2_000 });
    const running = await inbox.run(unsteady(clock, random), { concurrency: CONCURRENCY });
    const accepted: string[] = [];
    for (let n = 0; n < EVENTS; n++) {
      const event = verifiedEvent(Math.floor(random() * EVENTS), { signedAt: clock.now() });
      void inbox.accept(event).then(
        ({ eventId }) => accepted.push(eventId),
        () => {},
      );
      if (random() < 0.2) await clock.advance(random() * 300);
      if (random() < 0.05) running.pause();
      if (random() < 0.1) running.resume();
      const eventId = accepted[Math.floor(random() * accepted.length)];
      if (eventId !== undefined && random() < 0.2) {
        void inbox
          .runEvent(unsteady(clock, random), eventId, { afterOthers: random() < 0.5 })
          .catch(() => {});
      }
    }
    running.resume();
    await clock.advance("1m");
    heal();
    await clock.advance("10m");
    expect(await inbox.health(), `seed ${seed + history}`).toMatchObject({
      waiting: 0,
      retrying: 0,
      running: 0,
    });
    const stopped = running.stop();
    await clock.advance("1m");
    await stopped;
    expect(await mostAtOneTime(inbox, clock), `seed ${seed + history}`).toBe(CONCURRENCY);
    const closed = inbox.close({ graceMs: 0 });
    await clock.advance("1s");
    await closed;
  }
});
