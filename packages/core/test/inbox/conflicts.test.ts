import { isPayhooksError } from "@payhooks/core";
import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { RecordStore, SwapResult } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { isCanary } from "../../src/inbox/record/canary.ts";
import type { IdempotencyRecord } from "../../src/inbox/record/record.ts";
import { Records } from "../../src/inbox/write/records.ts";
import { type MemoryStore, memoryStore } from "../../src/memory/store.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";
import { held } from "./held-event.ts";

const KEY = "7".repeat(32);
const DECISION = { by: "ops", note: "asked the service" };

const failure = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

describe("a store whose now() stays ahead of its own clock", () => {
  it.each([true, false])(
    "is given up at the caller's deadline, after few writes (immediate: %s)",
    async (immediate) => {
      const clock = fakeClock();
      const memory = memoryStore({ clock });
      let swaps = 0;
      const store: RecordStore = {
        ...memory,
        immediate,
        now: () => clock.now() + 1_000,
        swap: (items) => {
          if (items.some(({ key }) => !isCanary(key))) swaps++;
          return memory.swap(items);
        },
      };
      const inbox = createInbox(store, { clock });
      await inbox.ready();
      const accepting = failure(
        (async () => inbox.accept(verifiedEvent(1, { signedAt: clock.now() }), { deadlineMs: 2_000 }))(),
      );
      await clock.advance(4_000);
      const error = await accepting;
      expect(isPayhooksError(error) && error.code).toBe("ERR_INBOX_UNAVAILABLE");
      expect(String(error)).toContain("clock");
      expect(swaps).toBeGreaterThan(2);
      expect(swaps).toBeLessThan(20);
      expect(memory.read([verifiedEvent().key])).toEqual([null]);
    },
  );

  it("is believed again as soon as its clock is right", async () => {
    const clock = fakeClock();
    let aheadMs = 1_000;
    const store: RecordStore = {
      ...memoryStore({ clock }),
      immediate: false,
      now: () => clock.now() + aheadMs,
    };
    const inbox = createInbox(store, { clock });
    await inbox.ready();
    const accepting = Promise.resolve(
      inbox.accept(verifiedEvent(1, { signedAt: clock.now() }), { deadlineMs: 2_000 }),
    );
    await clock.advance(500);
    aheadMs = 0;
    await clock.advance(1_000);
    expect(await accepting).toMatchObject({ outcome: "new" });
  });
});

it("a change of a record that others change all the time is given up at the caller's deadline", async () => {
  const environment = environmentOf();
  const memory = memoryStore({ clock: environment });
  const record: IdempotencyRecord = {
    ...{ flow: "payments", tenant: "", id: "0", statusSlot: null, isClosed: false },
    ...{ fixedFacts: {}, lease: null, slots: {}, signedAt: 0, expiresAt: environment.now() + 60_000 },
  };
  let writes = 0;
  const store: RecordStore = {
    ...memory,
    immediate: false,
    async swap(items) {
      const current = { version: `other-${writes++}`, record };
      return items.map((): SwapResult => ({ kind: "conflict", current }));
    },
  };
  const records = new Records(store, environment, 30_000);
  const change = (): { readonly answer: string; readonly record: IdempotencyRecord } => ({
    answer: "written",
    record,
  });
  const error = await failure(records.change({ key: KEY, deadlineMs: 100, change }));
  expect(isPayhooksError(error) && error.code).toBe("ERR_INBOX_UNAVAILABLE");
  expect(writes).toBeGreaterThan(1);
});

describe("a decision whose answer is lost while another process writes", () => {
  /** The next write is made, another process goes on at once, and the answer to the write never comes. */
  function losingAnswers(memory: MemoryStore, goesOn: () => Promise<unknown>) {
    let isNext = false;
    const store: RecordStore = {
      ...memory,
      immediate: false,
      async swap(items) {
        const results = memory.swap(items);
        if (!isNext) return results;
        isNext = false;
        await goesOn();
        return items.map(() => ({ kind: "unknown", cause: new Error("the connection broke") }));
      },
    };
    const loseNext = (): void => {
      isNext = true;
    };
    return { store, loseNext };
  }

  it.each(["replay", "discard"] as const)(
    "to %s is made once, and its caller gets no error",
    async (what) => {
      const memory = memoryStore();
      const other = createInbox(memory);
      const eventId = await held(other);
      let runs = 0;
      const { store, loseNext } = losingAnswers(memory, async () => {
        // It runs what was replayed to its end; what was discarded, a copy of it is written to.
        if (what === "discard") return other.accept(verifiedEvent(1, { amount: "7", signedAt: Date.now() }));
        return other.work(
          {
            run: async () => {
              runs++;
              return { outcome: { kind: "done" }, changes: [], onWritten: () => {} };
            },
            firstHandler: () => null,
            handlersOf: () => [],
            notify: () => {},
          },
          { deadlineMs: 1_000, limit: 1, concurrency: 1 },
        );
      });
      const inbox = createInbox(store);
      await inbox.ready();
      loseNext();
      await inbox.events[what](eventId, DECISION);
      expect(await other.events.get(eventId)).toMatchObject({
        state: what === "replay" ? "done" : "discarded",
      });
      expect(runs).toBe(what === "replay" ? 1 : 0);
      // A second decision fails: there is nothing to decide.
      const again = await failure(inbox.events[what](eventId, DECISION));
      expect(isPayhooksError(again) && again.code).toBe(
        what === "replay" ? "ERR_NOT_DECIDABLE" : "ERR_EVENT_NOT_FOUND",
      );
    },
  );
});
