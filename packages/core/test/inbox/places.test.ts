import { createReceiver, memoryInbox } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import type { Lane } from "../../src/inbox/record/lane.ts";
import { Places } from "../../src/inbox/run/places.ts";
import { settle } from "../../src/testing/clock.ts";
import { deliveryOf } from "../receiving.ts";

/** Places that know how long handlers take. */
async function placesFor(handlerMs: number, concurrency = 16) {
  const clock = fakeClock();
  const places = new Places(clock);
  places.open(concurrency);
  for (let run = 0; run < 100; run++) {
    const leave = places.enter("usual");
    await clock.advance(handlerMs);
    leave(true);
  }
  return { clock, places };
}

/** Begins runs of a lane, as many as have room there. Those that have a place run. */
function begin(places: Places, lane: Lane): number {
  let begun = 0;
  while (places.takeableCount(lane) > 0) {
    places.reserve(lane);
    if (places.hasFreePlace(lane)) places.enter(lane);
    begun++;
  }
  return begun;
}

describe("the places for runs", () => {
  it("leave room for many taken events while handlers are quick, and for as many as may run while handlers are slow", async () => {
    const unknown = new Places(fakeClock());
    expect(unknown.takeableCount("usual")).toBe(0);
    unknown.open(16);
    expect(unknown.takeableCount("usual")).toBe(16);
    expect((await placesFor(1)).places.takeableCount("usual")).toBe(16 + 256);
    const { places } = await placesFor(1_000);
    expect(places.takeableCount("usual")).toBe(16);
    places.reserve("usual");
    expect(places.takeableCount("usual")).toBe(15);
    places.giveBack("usual");
    expect(places.takeableCount("usual")).toBe(16);
  });

  it("allow some more events to be begun, since places are soon free: with slow handlers a quarter more than may run", async () => {
    const begin = (places: Places): number => {
      let begun = 0;
      for (; places.canBegin("usual"); begun++) places.reserve("usual");
      return begun;
    };
    const unknown = new Places(fakeClock());
    unknown.open(16);
    expect(begin(unknown)).toBe(20);
    expect(begin((await placesFor(50)).places)).toBe(20);
    expect(begin((await placesFor(1)).places)).toBe(16 + 80);
  });

  it("count taken events for the room, but not for the number that may be begun", async () => {
    const { places } = await placesFor(50);
    expect(places.takeableCount("usual")).toBe(16 + 15);
    for (let taken = 0; taken < 31; taken++) places.addTaken("usual");
    expect([places.takeableCount("usual"), places.canBegin("usual")]).toEqual([0, true]);
    places.removeTaken("usual");
    places.reserve("usual");
    expect(places.takeableCount("usual")).toBe(0);
  });

  it("all go to a crowd that is alone; half of them while others arrive, and for a minute after", async () => {
    const { clock, places } = await placesFor(1_000);
    expect(places.takeableCount("patient")).toBe(16);
    places.keepFree();
    expect(begin(places, "patient")).toBe(8);
    expect([places.hasFreePlace("patient"), places.hasFreePlace("usual")]).toEqual([false, true]);
    await clock.advance(59_999);
    expect([places.takeableCount("patient"), places.hasFreePlace("patient")]).toEqual([0, false]);
    await clock.advance(1);
    expect([places.takeableCount("patient"), places.hasFreePlace("patient")]).toEqual([8, true]);
    expect(begin(places, "patient")).toBe(8);
    expect([places.hasFreePlace("patient"), places.hasFreePlace("usual")]).toEqual([false, false]);
  });

  it("all go to usual events if no crowd runs, even while places are kept free", async () => {
    const { places } = await placesFor(1_000);
    places.keepFree();
    expect(begin(places, "usual")).toBe(16);
    expect(places.takeableCount("patient")).toBe(0);
  });

  it("leave room for others at once, even if a crowd began more than its half while it was alone", async () => {
    const { places } = await placesFor(1);
    expect(begin(places, "patient")).toBe(272);
    expect(places.takeableCount("usual")).toBe(0);
    places.keepFree();
    expect(places.takeableCount("patient")).toBe(0);
    expect(places.takeableCount("usual")).toBe(136);
    expect(places.hasFreePlace("usual")).toBe(false);
  });

  it("leave no room for others while events of the crowd run in all of them", async () => {
    const { places } = await placesFor(1_000);
    begin(places, "patient");
    places.keepFree();
    expect(places.takeableCount("usual")).toBe(0);
  });

  it("include one for a crowd, even if there is only one place", async () => {
    const { places } = await placesFor(1_000, 1);
    places.keepFree();
    expect([places.takeableCount("usual"), places.takeableCount("patient")]).toEqual([1, 1]);
    places.reserve("usual");
    expect(places.takeableCount("patient")).toBe(0);
  });

  it("say whether a number of events would take a quarter of them", () => {
    const places = new Places(fakeClock());
    expect(places.isAtLeastQuarter(1_000)).toBe(false);
    places.open(16);
    expect([3, 4].map((events) => places.isAtLeastQuarter(events))).toEqual([false, true]);
    places.open(2);
    expect([0, 1].map((events) => places.isAtLeastQuarter(events))).toEqual([false, true]);
  });
});

describe("events that were begun and get no place", () => {
  it("are handed back long before their lease ends, and that counts as no attempt", async () => {
    const keys = createTestKeys();
    const clock = fakeClock();
    const attempts: number[] = [];
    const warnings: string[] = [];
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox: memoryInbox({ clock, leaseMs: 30_000 }),
      clock,
      concurrency: 2,
      logger: silent,
    });
    let open = 0;
    receiver
      .onDeposit(async ({ payTxnId }, { attempt }) => {
        if (payTxnId === "quick") return;
        attempts.push(attempt);
        open++;
        await new Promise<void>((resolve) => void clock.after(1_000, resolve));
        open--;
      })
      .observe(({ type }) => void (type === "double-risk" && warnings.push(type)));
    await receiver.start();
    // The first one is quick, so more than two are begun.
    for (const id of ["quick", ...Array.from({ length: 10 }, (_, n) => `t-${n}`)]) {
      const fields = callbackFields({ payTxnId: id, referenceId: `o-${id}` }, clock.now());
      const { status } = await receiver.payments.receive(
        deliveryOf(signPaymentCallback(fields, keys.privateKey)),
      );
      expect(status).toBe(200);
      if (id === "quick") await settle();
    }
    await settle();
    expect([attempts.length, open]).toEqual([2, 2]);
    expect(await receiver.health()).toMatchObject({ running: 10, waiting: 0 });
    await clock.advance(300);
    expect(await receiver.health()).toMatchObject({ running: 2, waiting: 8 });
    await clock.advance("6s");
    expect(attempts).toEqual(Array(10).fill(1));
    expect(warnings).toEqual([]);
    await receiver.close();
  });
});
