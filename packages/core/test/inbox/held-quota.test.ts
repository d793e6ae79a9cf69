import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { Inbox } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { memoryInbox } from "../../src/memory/index.ts";
import { memoryStore } from "../../src/memory/store.ts";
import { sleep } from "../../src/time/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

let ids = 0;

/** An event of this tenant that has to be held. */
function entry(clock: FakeClock, tenant: string) {
  const event = verifiedEvent(++ids, { signedAt: clock.now(), verdict: "malformed", rank: null });
  return { ...event, delivery: { ...event.delivery, tenant } };
}

/** Offers events until one is refused, and says how many were held and why the last one was not. */
async function fill(inbox: Inbox, clock: FakeClock, tenant: string, maxHeld: number) {
  for (let held = 0; ; held++) {
    try {
      expect((await inbox.accept(entry(clock, tenant), { maxHeld })).outcome).toBe("held");
    } catch (error) {
      return { held, error };
    }
  }
}

/** Inboxes of several processes on one store that all of them reach over a network. */
async function processes(clock: FakeClock, count: number, changed: Partial<RecordStore> = {}) {
  const environment = environmentOf(clock);
  const store: RecordStore = { ...memoryStore({ clock: environment }), immediate: false, ...changed };
  const inboxes = Array.from({ length: count }, () => createInbox(store, { clock: environment }));
  for (const inbox of inboxes) await inbox.ready();
  return inboxes as [Inbox, ...Inbox[]];
}

describe("the quota of held events", () => {
  it("gives a tenant as many places as it leaves free, so that no number of tenants fills the quota", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    const held: number[] = [];
    for (const tenant of ["a", "b", "c", "d"]) held.push((await fill(inbox, clock, tenant, 100)).held);
    expect(held).toEqual([50, 25, 13, 6]);
    expect((await fill(inbox, clock, "a", 100)).error).toMatchObject({
      code: "ERR_HELD_FULL",
      status: 503,
      message:
        'The tenant "a" has 50 held events. A tenant may hold at most as many events as there are free places, and only 6 are free. Look at receiver.events.list({ state: "held", tenant }), replay or discard entries, or raise limits.maxHeld.',
    });
  });

  it("has no shares if there are no tenants", async () => {
    const clock = fakeClock();
    const { held, error } = await fill(memoryInbox({ clock }), clock, "", 100);
    expect(held).toBe(100);
    expect(error).toMatchObject({
      code: "ERR_HELD_FULL",
      message:
        '100 events are held, which is the limit. Look at receiver.events.list({ state: "held" }), replay or discard entries, or raise limits.maxHeld.',
    });
  });

  it("counts all held events by tenant, over any number of pages and for a tenant of any name", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    const strange = `\0${"x".repeat(600)}`;
    for (let n = 0; n < 1_200; n++) await inbox.accept(entry(clock, n < 1_100 ? strange : "b"));
    expect((await fill(inbox, clock, strange, 2_200)).held).toBe(0);
    expect((await fill(inbox, clock, "b", 2_200)).held).toBe(450);
  });

  it("counts events that other processes have held since as the asking tenant's, until it reads them", async () => {
    const clock = fakeClock();
    const [one, other] = (await processes(clock, 2)) as [Inbox, Inbox];
    for (let n = 0; n < 50; n++) await one.accept(entry(clock, "a"));
    expect((await fill(one, clock, "b", 100)).held).toBe(25);
    for (let n = 0; n < 10; n++) await other.accept(entry(clock, "c"));
    await clock.advance("2s");
    // At most 10 of these are of "d", and 15 places are free.
    const { held, error } = await fill(one, clock, "d", 100);
    expect(held).toBe(3);
    expect(error).toMatchObject({
      message: expect.stringContaining('The tenant "d" has up to 13 held events.'),
    });
    await clock.advance("10s");
    expect((await fill(one, clock, "d", 100)).held).toBe(5);
  });

  it("counts events that another process has discarded for ten seconds at most, and its own decisions at once", async () => {
    const clock = fakeClock();
    const [one, other] = (await processes(clock, 2)) as [Inbox, Inbox];
    const { held } = await fill(one, clock, "a", 10);
    expect(held).toBe(5);
    const discardOne = async (inbox: Inbox) => {
      const [first] = (await inbox.events.list({ state: "held" })).events;
      await inbox.events.discard(first?.eventId ?? "", { by: "an operator", note: "seen" });
    };
    await discardOne(one);
    expect((await fill(one, clock, "a", 10)).held).toBe(1);
    for (let n = 0; n < 3; n++) await one.accept(entry(clock, "b"));
    await discardOne(other);
    await discardOne(other);
    await clock.advance("10s");
    expect((await fill(one, clock, "a", 10)).held).toBe(1);
  });

  it("is read once for many callers, only from its half on, and again after a failure", async () => {
    const clock = fakeClock();
    let lists = 0;
    let fails = true;
    const memory = memoryStore({ clock: environmentOf(clock) });
    const [inbox] = await processes(clock, 1, {
      ...memory,
      immediate: false,
      list: (...given) => {
        lists++;
        return fails ? Promise.reject(new Error("gone")) : memory.list(...given);
      },
    });
    for (let n = 0; n < 50; n++) await inbox.accept(entry(clock, "a"), { maxHeld: 101 });
    expect(lists).toBe(0);
    await inbox.accept(entry(clock, "a"));
    await clock.advance("2s");
    const ask = () =>
      Promise.allSettled(
        ["a", "b", "c"].map(async (tenant) => inbox.accept(entry(clock, tenant), { maxHeld: 101 })),
      );
    expect((await ask()).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    fails = false;
    lists = 0;
    expect((await ask()).map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(lists).toBe(1);
  });

  it("is counted once for deliveries that arrive together", async () => {
    const clock = fakeClock();
    let counts = 0;
    const memory = memoryStore({ clock: environmentOf(clock) });
    const [inbox] = await processes(clock, 1, {
      counts: async () => {
        counts++;
        await sleep(clock, 5);
        return memory.counts();
      },
    });
    const together = Array.from({ length: 200 }, () => inbox.accept(entry(clock, "a"), { maxHeld: 3_000 }));
    await clock.advance(10);
    expect((await Promise.all(together)).every(({ outcome }) => outcome === "held")).toBe(true);
    expect(counts).toBe(1);
  });

  it("is read once a second at most while a bulk discards held events, and soon has the room that became free", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock: environmentOf(clock) });
    const asked = { counts: 0, lists: 0 };
    const [inbox] = await processes(clock, 1, {
      ...memory,
      immediate: false,
      counts() {
        asked.counts++;
        return memory.counts();
      },
      list(...given) {
        asked.lists++;
        return memory.list(...given);
      },
    });
    expect((await fill(inbox, clock, "a", 400)).held).toBe(200);
    const eventIds = (await inbox.events.list({ state: "held", limit: 200 })).events.map(
      ({ eventId }) => eventId,
    );
    Object.assign(asked, { counts: 0, lists: 0 });
    const who = { by: "an operator", note: "seen" };
    const discarding = inbox.events.discard(eventIds, { ...who, perSecond: 50 });
    let held = 0;
    for (let n = 0; n < 400; n++) {
      await clock.advance(10);
      const accepting = inbox.accept(entry(clock, "a"), { maxHeld: 400 });
      held += await accepting.then(
        () => 1,
        () => 0,
      );
    }
    expect(await discarding).toMatchObject({ decided: 200 });
    expect(held).toBeGreaterThan(150);
    expect(asked.counts).toBeLessThan(12);
    expect(asked.lists).toBeLessThan(12);
    await clock.advance("1s");
    expect((await fill(inbox, clock, "a", 400)).held).toBe(200 - held);
  });
});
