import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import type { IdempotencyRecord } from "../../src/inbox/record/record.ts";
import { type MemoryStore, memoryStore } from "../../src/memory/store.ts";
import { sleep } from "../../src/time/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

const WHO = { by: "ada", note: "tried again" };

/** An inbox on this store that holds events of these amounts. */
async function holding(clock: FakeClock, store: RecordStore, amounts: readonly string[]) {
  const inbox = createInbox(store, { clock: environmentOf(clock) });
  const eventIds: string[] = [];
  for (const [n, amount] of amounts.entries()) {
    const signedAt = clock.now();
    const event = verifiedEvent(n, { signedAt, verdict: "malformed", rank: null, amount });
    eventIds.push((await inbox.accept(event)).eventId);
    await clock.advance(1);
  }
  return { inbox, eventIds };
}

describe("the pace of a bulk", () => {
  it("does not make up for the time in which it read events that do not match", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    const store: RecordStore = {
      ...memory,
      async list(...args) {
        await sleep(clock, 2_000);
        return memory.list(...args);
      },
    };
    const amounts = Array.from({ length: 530 }, (_, n) => (n < 500 ? "1" : "5"));
    const { inbox } = await holding(clock, store, amounts);
    const decidedAt: number[] = [];
    const discarding = inbox.events.discard(
      { state: "held", reason: "malformed", amount: { min: "5" } },
      { ...WHO, perSecond: 10, progress: () => decidedAt.push(clock.now()) },
    );
    await clock.advance("10s");
    expect(await discarding).toMatchObject({ found: 30, decided: 30 });
    const [first = 0] = decidedAt;
    expect(decidedAt.map((at) => Math.round(at - first))).toEqual(
      Array.from({ length: 30 }, (_, n) => n * 100),
    );
  });

  it("counts the time that a decision takes", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    let writeMs = 0;
    const store: RecordStore = {
      ...memory,
      immediate: false,
      async swap(items) {
        if (writeMs > 0) await sleep(clock, writeMs);
        return memory.swap(items);
      },
    };
    const { inbox, eventIds } = await holding(
      clock,
      store,
      Array.from({ length: 10 }, () => "1"),
    );
    writeMs = 60;
    const discarding = inbox.events.discard(eventIds, { ...WHO, perSecond: 10 });
    await clock.advance(9 * 100 + 60);
    expect(await discarding).toMatchObject({ decided: 10 });
  });
});

describe("a record that a bulk cannot change", () => {
  it("is left out and reported, if the record has become unreadable since it was listed", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    let brokenKey = "";
    const record = { unreadable: "it is sealed with the key k2", code: "ERR_SEAL_KEY_MISSING" } as const;
    const store: RecordStore = {
      ...memory,
      swap: (items) =>
        items.flatMap((item) =>
          item.key === brokenKey
            ? [{ kind: "conflict", current: { version: "other", record } }]
            : memory.swap([item]),
        ),
    };
    const { inbox, eventIds } = await holding(clock, store, ["1", "2", "3"]);
    brokenKey = verifiedEvent(1).key;
    const unreadable = { count: 1, error: { cause: { code: "ERR_SEAL_KEY_MISSING" } } };
    const many = { ...WHO, perSecond: Number.POSITIVE_INFINITY };
    const filter = { state: "held", reason: "malformed" } as const;
    expect(await inbox.events.discard(filter, many)).toMatchObject({ found: 2, decided: 2, unreadable });
    await expect(inbox.events.discard(eventIds[1] ?? "", WHO)).rejects.toMatchObject(unreadable.error);
  });

  it("is left out and reported, if its fields contradict each other", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    const { inbox, eventIds } = await holding(clock, memory, ["1", "2", "3"]);
    damage(memory, verifiedEvent(1).key);
    const unreadable = {
      count: 1,
      error: { message: expect.stringMatching(/contradict each other \(TypeError/) },
    };
    const many = { ...WHO, perSecond: Number.POSITIVE_INFINITY };
    const report = { found: 2, decided: 2, complete: true, unreadable };
    const filter = { state: "held", reason: "malformed" } as const;
    expect(await inbox.events.discard(filter, { ...many, dryRun: true })).toMatchObject(report);
    expect(await inbox.events.discard(filter, many)).toMatchObject(report);
    await expect(inbox.events.discard(eventIds[1] ?? "", WHO)).rejects.toMatchObject(unreadable.error);
  });
});

/** Takes a part of the record without which no decision about it can be computed. */
function damage(memory: MemoryStore, key: string): void {
  const [found] = memory.read([key]);
  if (found === null || found === undefined || "unreadable" in found.record) throw new Error("no record");
  const record = structuredClone(found.record) as IdempotencyRecord;
  for (const slot of Object.values(record.slots)) Reflect.set(slot.work ?? {}, "history", null);
  memory.restore(key, { version: "damaged", record });
}
