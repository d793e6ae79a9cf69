import type { RecordStore } from "@payhooks/core/inbox";
import { memoryStore } from "@payhooks/core/inbox";
import { fakeClock } from "@payhooks/core/testing";
import { type FixtureKind, type InboxFixture, withOverrides } from "./inbox-processes.ts";
import { skippingClock } from "./skipping-clock.ts";

const BOUNDS = { maxRecords: 5_000, maxUnfinished: 5_000 };

export const memoryKind: FixtureKind = { timeTravel: true, endsWithProcess: true };
export const sharedMemoryKind: FixtureKind = { timeTravel: true, endsWithProcess: false };

/** Two processes on one memory are an impossible thing, but they hold the suite against the simplest inbox. */
export function memoryInboxFixture(): InboxFixture {
  const clock = fakeClock();
  return fixtureOn(clock, (ms) => clock.advance(ms));
}

function fixtureOn(clock: InboxFixture["clock"], advance: InboxFixture["advance"]): InboxFixture {
  // Closed with its last process only.
  const store = withOverrides<RecordStore>(memoryStore({ clock, ...BOUNDS }), {
    close: async () => {},
  });
  return {
    ...memoryKind,
    clock,
    advance,
    leaseMs: 30_000,
    open: () => ({ store }),
    close: async () => {},
  };
}

/** The same as if it outlived its processes, and as if it were out of reach by a way: answers come a turn later. */
export function sharedMemoryInboxFixture(): InboxFixture {
  const { clock, advance } = skippingClock();
  const fixture = fixtureOn(clock, advance);
  const { store } = fixture.open();
  const notes = new Map<string, string>();
  const distant = withOverrides<RecordStore>(store, {
    durability: "host",
    immediate: false,
    endsWithProcess: false,
    read: async (keys) => later(() => store.read(keys)),
    swap: async (items) => later(() => store.swap(items)),
    takeDue: async (limit, hideMs) => later(() => store.takeDue(limit, hideMs)),
    readNote: async (name) => notes.get(name) ?? null,
    writeNote: async (name, text) => void notes.set(name, text),
  });
  return {
    ...fixture,
    ...sharedMemoryKind,
    open: () => ({ store: distant }),
    async advance(ms) {
      await rest();
      await advance(ms);
      await rest();
    },
  };
}

async function later<T>(action: () => T): Promise<T> {
  await new Promise((resolve) => setImmediate(resolve));
  return action();
}

/** The work that was begun before time moves on takes some calls, and each call takes a turn or two. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve));
}
