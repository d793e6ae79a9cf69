/** Tests which events wait in the patient lane. */
import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { Lane } from "../../src/inbox/record/lane.ts";
import { type CrowdMember, Crowds } from "../../src/inbox/run/crowds.ts";
import { Places } from "../../src/inbox/run/places.ts";

const PLACES = 16;

function eventKindOf(tenant: string, name = "DEPOSIT"): CrowdMember {
  return { name, delivery: { tenant } };
}

interface Process {
  readonly clock: FakeClock;
  readonly places: Places;
  readonly crowds: Crowds;
  /** Accepts events, which wait; the lanes that they are told. */
  accept(event: CrowdMember, count: number): Lane[];
  /** Begins events; the returned function ends them. */
  begin(event: CrowdMember, lane: Lane, count: number): () => void;
}

function start(): Process {
  const clock = fakeClock();
  const places = new Places(clock);
  places.open(PLACES);
  const crowds = new Crowds(places, clock);
  return {
    clock,
    places,
    crowds,
    accept: (event, count) =>
      Array.from({ length: count }, () => {
        const lane = crowds.assignLane(event);
        crowds.countWaiting(event);
        return lane;
      }),
    begin(event, lane, count) {
      for (let n = 0; n < count; n++) crowds.countBegun(event, lane);
      return () => {
        for (let n = 0; n < count; n++) crowds.countEnded(event, lane);
      };
    },
  };
}

const [loud, quiet] = [eventKindOf("loud"), eventKindOf("quiet")];

function count(lanes: readonly Lane[]): { readonly usual: number; readonly patient: number } {
  const patient = lanes.filter((lane) => lane === "patient").length;
  return { usual: lanes.length - patient, patient };
}

describe("a crowd of events", () => {
  it("is made of running and waiting events of one tenant and name, if they are a quarter of the places or more", () => {
    const { accept, begin } = start();
    expect(count(accept(loud, 3))).toEqual({ usual: 3, patient: 0 });
    // Of those that waited one is begun.
    begin(loud, "usual", 1);
    expect(count(accept(loud, 3))).toEqual({ usual: 1, patient: 2 });
  });

  it("is no longer a crowd when its events have ended", () => {
    const { crowds, accept, begin } = start();
    accept(loud, 4);
    const end = begin(loud, "usual", 4);
    expect(crowds.assignLane(loud)).toBe("patient");
    end();
    expect(crowds.assignLane(loud)).toBe("usual");
  });

  it("does not count accepted events that leave nothing to run, such as copies", () => {
    const { crowds } = start();
    for (let copy = 0; copy < 10; copy++) {
      expect(crowds.assignLane(loud)).toBe("usual");
      crowds.countWaiting(loud)();
    }
  });

  it("does not include events of another tenant or name", () => {
    const { crowds, accept } = start();
    accept(loud, 100);
    expect(crowds.assignLane(loud)).toBe("patient");
    expect(crowds.assignLane(quiet)).toBe("usual");
    expect(crowds.assignLane(eventKindOf("loud", "WITHDRAWAL"))).toBe("usual");
    // No text of one can imitate the other.
    expect(crowds.assignLane(eventKindOf("loudDEPOSIT", ""))).toBe("usual");
  });

  it("is not seen in a small burst beside a much greater one, even if the small one is more than a quarter of the places", () => {
    const { accept } = start();
    accept(loud, 320);
    expect(count(accept(quiet, 10))).toEqual({ usual: 10, patient: 0 });
  });

  it("may be of several kinds, if they have many more events than the other kinds; if all kinds have few, none is a crowd", () => {
    const { accept } = start();
    const kinds = Array.from({ length: 8 }, (_, n) => eventKindOf(`m-${n}`));
    for (const kind of kinds) expect(count(accept(kind, 2))).toEqual({ usual: 2, patient: 0 });
    for (const kind of kinds.slice(0, 2)) expect(count(accept(kind, 20)).patient).toBe(18);
    for (const kind of kinds.slice(2)) expect(count(accept(kind, 1))).toEqual({ usual: 1, patient: 0 });
  });

  it("is never seen in a process that runs no events", () => {
    const { places, accept } = start();
    places.open(null);
    expect(count(accept(loud, 100))).toEqual({ usual: 100, patient: 0 });
  });
});

describe("the number of waiting events", () => {
  it("is forgotten once a poll finds nothing due, except for events that came after that poll began", async () => {
    const { clock, crowds, accept } = start();
    const polledAt = clock.monotonic();
    await clock.advance(10);
    accept(loud, 100);
    crowds.onEmptyPoll(polledAt);
    expect(crowds.assignLane(loud)).toBe("patient");
    await clock.advance(10);
    crowds.onEmptyPoll(clock.monotonic());
    expect(crowds.assignLane(loud)).toBe("usual");
  });

  it("is forgotten after a minute, since other processes may have run the events", async () => {
    const { clock, crowds, accept } = start();
    accept(loud, 100);
    await clock.advance(59_999);
    expect(crowds.assignLane(loud)).toBe("patient");
    await clock.advance(1);
    expect(crowds.assignLane(loud)).toBe("usual");
  });

  it("does not fall below zero when an acceptance ends after the number was forgotten", async () => {
    const { clock, crowds, accept } = start();
    const waitsNoMore = crowds.countWaiting(loud);
    await clock.advance(10);
    crowds.onEmptyPoll(clock.monotonic());
    accept(loud, 4);
    waitsNoMore();
    expect(crowds.assignLane(loud)).toBe("patient");
  });
});

describe("places are kept free of a crowd", () => {
  it("when a usual event of another kind comes, or is begun, while the crowd runs", () => {
    for (const meet of [
      ({ crowds }: Process) => void crowds.assignLane(quiet),
      ({ begin }: Process) => void begin(quiet, "usual", 1),
    ]) {
      const process = start();
      process.begin(loud, "patient", 8);
      expect(process.places.hasFreePlace("patient")).toBe(true);
      const before = process.places.takeableCount("patient");
      meet(process);
      expect(process.places.takeableCount("patient")).toBeLessThan(before);
    }
  });

  it("but not for the crowd's own events, nor for events that come after it has ended", () => {
    const { places, crowds, begin } = start();
    const before = places.takeableCount("patient");
    const end = begin(loud, "patient", 8);
    begin(loud, "usual", 1)();
    end();
    crowds.assignLane(quiet);
    expect(places.takeableCount("patient")).toBe(before);
  });
});
