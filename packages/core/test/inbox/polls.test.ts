/**
 * Tests what polls for due events cost a fleet: how many find nothing, and which process polls when an event falls due, also
 * if only one of the processes can run it.
 */
import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { Inbox, Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { memoryStore } from "../../src/memory/store.ts";
import { verifiedEvent } from "../verified-event.ts";

const PROCESSES = 24;
const EVENTS = 240;
const POLL_MS = 500;
const EMPTY_MS = 50;
const PLAYED_MS = 6_000;

interface Polls {
  readonly times: { readonly at: number; readonly found: number }[];
}

/** A store that many processes share, as this one of them sees it. */
function shared(
  store: RecordStore,
  clock: FakeClock,
  polls: Polls,
  connect: typeof wellConnected,
): RecordStore {
  const one: RecordStore = {
    ...store,
    endsWithProcess: false,
    takeDue: async (...args) => {
      const due = await store.takeDue(...args);
      polls.times.push({ at: clock.now(), found: due.records.length });
      return due;
    },
  };
  return connect(one, clock);
}

const wellConnected = (store: RecordStore, _: FakeClock): RecordStore => store;

/** The mistake: whatever a process has seen in a poll wakes it when it falls due, as a hint does. */
function wakingAll(store: RecordStore, clock: FakeClock): RecordStore {
  let wake = (): unknown => undefined;
  return {
    ...store,
    takeDue: async (...args) => {
      const due = await store.takeDue(...args);
      const { nextDueAt } = due;
      if (nextDueAt !== null) clock.after(Math.max(1, nextDueAt - clock.now()), () => wake());
      return due;
    },
    onDue: async (given) => {
      wake = given;
      return () => {};
    },
  };
}

/** Handlers that fail, and are to be tried again after `delayMs`. */
function failing(clock: FakeClock, delayMs: () => number, calls: number[]): Runner {
  return {
    run: async () => {
      calls.push(clock.now());
      return { outcome: { kind: "retry", delayMs: delayMs() }, changes: [], onWritten: () => {} };
    },
    firstHandler: () => null,
    handlersOf: () => [],
    notify: () => {},
  };
}

const idle: Runner = {
  run: () => Promise.reject(new Error("No event was expected to run here.")),
  firstHandler: () => null,
  handlersOf: () => [],
  notify: () => {},
};

/** The events are spread over the processes, and each handler fails and is tried again after 2 to 4 seconds. */
async function fleetOf(processes: number, connect = wellConnected) {
  const clock = fakeClock();
  const memory = memoryStore({ clock });
  const calls: number[] = [];
  let retries = 0;
  // The golden ratio: spread evenly, and never the same twice.
  const runner = failing(clock, () => 2_000 + ((retries++ * 1_236) % 2_000), calls);
  const members: { readonly inbox: Inbox; readonly polls: Polls }[] = [];
  for (let n = 0; n < processes; n++) {
    const polls: Polls = { times: [] };
    const store = shared(memory, clock, polls, connect);
    members.push({ polls, inbox: createInbox(store, { clock, pollMs: POLL_MS }) });
  }
  for (const { inbox } of members) {
    await inbox.run(runner, { concurrency: 16 });
    await clock.advance(17);
  }
  for (let n = 0; n < EVENTS; n++) {
    await members[n % processes]?.inbox.accept(verifiedEvent(n, { signedAt: clock.now() }));
    await clock.advance(10);
  }
  await clock.advance(4_000);
  for (const { polls } of members) polls.times.length = 0;
  calls.length = 0;
  await clock.advance(PLAYED_MS);
  const polls = members.flatMap(({ polls: { times } }) => times);
  return {
    polls: polls.length,
    useful: polls.filter(({ found }) => found > 0).length,
    calls: calls.length,
    /** The shortest time from a poll that found nothing to the next one of the same process. */
    restMs: Math.min(...members.map(({ polls: { times } }) => shortestRest(times))),
    close: () => Promise.all(members.map(({ inbox }) => inbox.close({ graceMs: 0 }))),
  };
}

function shortestRest(times: Polls["times"]): number {
  const rests = times.slice(1).flatMap(({ at }, n) => (times[n]?.found === 0 ? [at - times[n].at] : []));
  return Math.min(...rests);
}

describe("polls for due events", () => {
  it("of 24 processes whose handlers fail are fewer than two for each poll that finds something", async () => {
    const fleet = await fleetOf(PROCESSES);
    expect(fleet.calls).toBeGreaterThan(EVENTS);
    expect(fleet.polls / fleet.useful).toBeLessThan(2);
    expect(fleet.restMs).toBeGreaterThanOrEqual(EMPTY_MS);
    await fleet.close();
  });

  it("are more (control) if each process polls whenever an event that it has seen becomes due", async () => {
    const fleet = await fleetOf(PROCESSES, wakingAll);
    expect(fleet.polls / fleet.useful).toBeGreaterThan(2);
    await fleet.close();
  });
});

describe("an event that a process has put off", () => {
  /** One process of two puts an event off for two seconds, and lives on or dies. How late is it when it is tried again, and where? */
  async function triedAgain(pollMs: number, lives: boolean) {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    const start = async () => {
      const calls: number[] = [];
      const store = { ...memory, endsWithProcess: false, close: async () => {} };
      const inbox = createInbox(store, { clock, pollMs });
      const runner = failing(clock, () => 2_000, calls);
      const running = await inbox.run(runner, { concurrency: 1 });
      return { inbox, running, calls };
    };
    const [owner, other] = [await start(), await start()];
    await owner.inbox.accept(verifiedEvent(1, { signedAt: clock.now() }));
    await clock.advance(1);
    const due = (owner.calls[0] ?? Number.NaN) + 2_000;
    if (!lives) owner.running.pause();
    await clock.advance(due + 1_500 - clock.now());
    await Promise.all([owner, other].map(({ inbox }) => inbox.close({ graceMs: 0 })));
    const [again = Number.NaN] = lives ? owner.calls.slice(1) : other.calls;
    return { lateMs: again - due, calls: owner.calls.length + other.calls.length };
  }

  it("is tried again by that process, at its time", async () => {
    expect(await triedAgain(300, true)).toEqual({ lateMs: 0, calls: 2 });
  });

  it("is tried again by another process within pollMs, if that process has died", async () => {
    const { lateMs, calls } = await triedAgain(300, false);
    expect(calls).toBe(2);
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThanOrEqual(300);
  });

  it("is tried again within a second by another process that has seen its due time, however seldom that process polls", async () => {
    const { lateMs, calls } = await triedAgain(1_500, false);
    expect(calls).toBe(2);
    expect(lateMs).toBeGreaterThanOrEqual(500);
    expect(lateMs).toBeLessThanOrEqual(1_000);
  });
});

describe("events that only one of two processes can run", () => {
  /** One process has no flow for the six events, and is handed each of them before the other process starts. */
  async function waitsOf(apartMs: number) {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    const inboxOf = () => {
      const store = { ...memory, endsWithProcess: false, close: async () => {} };
      return createInbox(store, { clock, pollMs: POLL_MS });
    };
    const [acceptor, older, newer] = [inboxOf(), inboxOf(), inboxOf()];
    let handed = 0;
    const hasNoFlow = (): boolean => {
      handed++;
      return false;
    };
    await older.run({ ...idle, hasFlow: hasNoFlow }, { concurrency: 1 });
    for (let n = 0; n < 6; n++) {
      await acceptor.accept(verifiedEvent(n, { signedAt: clock.now() }));
      await clock.advance(apartMs);
    }
    const before = handed;
    const startedAt = clock.now();
    const waits: number[] = [];
    const run: Runner["run"] = async () => {
      waits.push(clock.now() - startedAt);
      return { outcome: { kind: "done" }, changes: [], onWritten: () => {} };
    };
    await newer.run({ ...idle, run }, { concurrency: 1 });
    await clock.advance(60_000);
    await Promise.all([acceptor, older, newer].map((inbox) => inbox.close({ graceMs: 0 })));
    return { before, waits };
  }

  it.each([400, 700, 1_100, 1_900])(
    "begin within 15 s once that process has started, though the other was handed them %d ms apart",
    async (apartMs) => {
      const { before, waits } = await waitsOf(apartMs);
      expect(before).toBeGreaterThanOrEqual(6);
      expect(waits).toHaveLength(6);
      expect(Math.max(...waits)).toBeLessThan(15_000);
    },
  );
});
