/** A store that takes a great part of a lease for each of its answers. */
import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { type MemoryStore, memoryStore } from "../../src/memory/store.ts";
import type { UndatedNotice } from "../../src/notices/notice.ts";
import { sleep } from "../../src/time/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

const LEASE_MS = 4_000;
const EVENTS = 12;
const TEN_MINUTES_MS = 600_000;

/** The store on a server whose answers are late. Its time is known only from them. */
function slow(store: MemoryStore, clock: FakeClock, delayMs: () => number): RecordStore {
  const late = async <T>(answer: T): Promise<Awaited<T>> => {
    const made = await answer;
    await sleep(clock, delayMs());
    return made;
  };
  return {
    ...store,
    immediate: false,
    endsWithProcess: false,
    now: () => clock.now() - delayMs(),
    read: (keys) => late(store.read(keys)),
    swap: (items) => late(store.swap(items)),
    takeDue: (limit, hideMs) => late(store.takeDue(limit, hideMs)),
  };
}

/** Runs one handler for each event, which takes half a second. */
function runnerOf(clock: FakeClock, called: string[], notices: UndatedNotice[]): Runner {
  return {
    async run(run) {
      const { eventId, handlerStates } = run.input;
      const before = handlerStates.credit ?? null;
      if (run.mayCall() !== "yes") {
        const changes = [{ name: "credit", kind: "undone", before } as const];
        return { outcome: { kind: "handed-back" }, changes, onWritten() {} };
      }
      run.noteCall();
      called.push(eventId);
      await sleep(clock, 500);
      return {
        outcome: { kind: "done" },
        changes: [{ name: "credit", kind: "done", attempt: 1 }],
        onWritten() {},
      };
    },
    firstHandler: () => "credit",
    handlersOf: () => ["credit"],
    notify: (notice) => void notices.push(notice),
  };
}

describe("a store whose answers take a great part of a lease", () => {
  it.each([0.4, 0.6, 0.9])(
    "lets every handler be called once, and a late call is reported, if an answer takes %f of a lease",
    async (part) => {
      const clock = fakeClock();
      const environment = environmentOf(clock);
      let delayMs = 0;
      const store = slow(memoryStore({ clock }), clock, () => delayMs);
      const inbox = createInbox(store, { clock: environment, leaseMs: LEASE_MS });
      const events = Array.from({ length: EVENTS }, (_, n) =>
        verifiedEvent(n + 1, { signedAt: clock.now() }),
      );
      for (const event of events) {
        const accepting = inbox.accept(event);
        await clock.advance(1);
        expect(await accepting).toMatchObject({ outcome: "new" });
      }
      delayMs = part * LEASE_MS;
      const [called, notices]: [string[], UndatedNotice[]] = [[], []];
      await inbox.run(runnerOf(clock, called, notices), { concurrency: 4 });
      await clock.advance(TEN_MINUTES_MS);
      expect(called.toSorted()).toEqual(events.map(({ key, slot }) => key + slot).sort());
      expect(notices.filter(({ type }) => type === "double-risk")).toEqual([]);
      const late = notices.some((notice) => notice.type === "inbox-error" && notice.during === "begin");
      expect(late).toBe(part > 0.5);
      delayMs = 0;
      await clock.advance(TEN_MINUTES_MS);
      const closing = inbox.close({ graceMs: 0 });
      await clock.advance(1);
      expect(await closing).toEqual({ unfinished: 0 });
    },
  );
});
