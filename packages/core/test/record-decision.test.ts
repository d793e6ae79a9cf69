import { describe, expect, it } from "vitest";
import {
  discard,
  heldOf,
  heldSlots,
  isFinished,
  markQueued,
  matchesFilter,
  replay,
  step,
} from "../src/inbox/steps.ts";
import { DAY, event, FAILED, Ground, KEY, running, SUCCESS } from "./record-ground.ts";

describe("a person's decision", () => {
  /** Held after its handlers, of which one was done. */
  function held(): Ground {
    const { ground, token } = running();
    step(ground.record, SUCCESS, token, "first", { kind: "done" }, 1_000);
    step(
      ground.record,
      SUCCESS,
      token,
      "second",
      { kind: "given-up", error: "no", reason: "rejected" },
      1_000,
    );
    ground.finish(SUCCESS, token, { kind: "held", reason: "rejected", detail: "no", tell: false });
    markQueued(ground.record, SUCCESS, { eventId: KEY + SUCCESS, replay: 0 });
    return ground;
  }
  const decision = { by: "ops", note: "fixed" };

  it("to replay makes it wait again, without the steps that were not done, under the next number", () => {
    const ground = held();
    expect(replay(ground.record, SUCCESS, KEY + SUCCESS, decision, 2_000)).toEqual({
      eventId: KEY + SUCCESS,
      replay: 1,
    });
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "waiting", told: false, queued: false, replays: 1 });
    const { work } = ground.slot(SUCCESS);
    expect(Object.keys(work?.steps ?? {})).toEqual(["first"]);
    expect(work).toMatchObject({ dueAt: 0, only: null });
    expect(work?.history.at(-1)).toEqual({ at: 2_000, what: "replay 1", by: "ops", note: "fixed" });
    // Its job may have been lost: the same replay again gives it out again.
    expect(replay(ground.record, SUCCESS, KEY + SUCCESS, decision, 2_000)).toMatchObject({ replay: 1 });
    markQueued(ground.record, SUCCESS, { eventId: KEY + SUCCESS, replay: 1 });
    expect(replay(ground.record, SUCCESS, KEY + SUCCESS, decision, 2_000)).toBeNull();
  });

  it("to replay some handlers forgets that those were done", () => {
    const ground = held();
    replay(ground.record, SUCCESS, KEY + SUCCESS, { ...decision, handlers: ["first"] }, 2_000);
    expect(ground.slot(SUCCESS).work?.steps).toEqual({});
    expect(ground.slot(SUCCESS).work?.only).toEqual(["first"]);
    const begun = ground.begin(SUCCESS, { replay: 1 });
    expect(begun).toMatchObject({ kind: "leased", lease: { only: ["first"], mode: "run" } });
  });

  it("to replay takes the lease from whoever is being told", () => {
    const ground = held();
    ground.slot(SUCCESS).told = false;
    const begun = ground.begin(SUCCESS);
    if (begun.kind !== "leased") throw new Error(begun.kind);
    replay(ground.record, SUCCESS, KEY + SUCCESS, decision, 2_000);
    expect(ground.finish(SUCCESS, begun.lease.token, { kind: "told" }).fenced).toBe("lost");
  });

  it("to replay or discard is refused where nothing is held", () => {
    const { ground } = running();
    expect(replay(null, SUCCESS, "", decision, 2_000)).toBeNull();
    expect(replay(ground.record, FAILED, "", decision, 2_000)).toBeNull();
    expect(replay(ground.record, SUCCESS, "", decision, 2_000)).toBeNull();
    expect(discard(null, SUCCESS, decision, 2_000)).toBe(false);
    expect(discard(ground.record, FAILED, decision, 2_000)).toBe(false);
    expect(discard(ground.record, SUCCESS, decision, 2_000)).toBe(false);
    const waiting = new Ground();
    waiting.accept(event("SUCCESS"));
    expect(replay(waiting.record, SUCCESS, "", decision, 2_000)).toBeNull();
  });

  it("to discard leaves copies duplicates, and remembers who and why", () => {
    const ground = held();
    ground.slot(SUCCESS).queued = false;
    ground.slot(SUCCESS).told = false;
    ground.begin(SUCCESS);
    expect(discard(ground.record, SUCCESS, decision, 2_000)).toBe(true);
    expect(ground.record).toMatchObject({ lease: null, expiresAt: 2_000 + DAY });
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "discarded", queued: true, work: null });
    expect(ground.accept(event("SUCCESS"))).toMatchObject({ outcome: "duplicate", reason: null });
    expect(ground.life(SUCCESS)).toMatchObject({
      state: "discarded",
      history: [{ at: 2_000, what: "discarded", by: "ops", note: "fixed" }],
    });
  });

  it("about one slot leaves the lease of another alone", () => {
    const { ground } = running(event("SUCCESS"));
    ground.accept(event("FAILED"));
    discard(ground.record, FAILED, decision, 1_010);
    expect(ground.record?.lease?.slot).toBe(SUCCESS);
    const other = running(event("SUCCESS")).ground;
    other.accept(event("FAILED"));
    replay(other.record, FAILED, KEY + FAILED, decision, 1_010);
    expect(other.record?.lease?.slot).toBe(SUCCESS);
  });

  it("can be made on its whole life, listed by flow, tenant and reason", () => {
    const ground = held();
    const steps = {
      first: { tries: 0, state: "done", dueAt: 0, error: null, reason: null },
      second: { tries: 0, state: "given-up", dueAt: 0, error: "no", reason: "rejected" },
    };
    const life = {
      eventId: KEY + SUCCESS,
      flow: "payments",
      tenant: "t",
      id: "tx-1",
      event: "DEPOSIT",
      status: "SUCCESS",
      state: "held",
      reason: "rejected",
      detail: "no",
      replays: 0,
      steps,
      history: [
        { at: 1_000, what: "accepted" },
        { at: 1_000, what: "held: rejected" },
      ],
    };
    expect(ground.life(SUCCESS)).toEqual(life);
    if (ground.record === null) throw new Error("no record");
    const entry = heldOf(ground.record, KEY + SUCCESS);
    expect(entry).toEqual({
      ...life,
      referenceId: "o-1",
      heldAt: 1_000,
      delivery: event("SUCCESS").delivery,
    });
    if (entry === null) throw new Error("not held");
    expect(matchesFilter(entry, {})).toBe(true);
    expect(matchesFilter(entry, { flow: "payments", tenant: "t", reason: "rejected" })).toBe(true);
    expect(matchesFilter(entry, { flow: "connect" })).toBe(false);
    expect(matchesFilter(entry, { tenant: "u" })).toBe(false);
    expect(matchesFilter(entry, { reason: "conflict" })).toBe(false);
  });

  it("is not asked for where nothing is held", () => {
    const { ground, token } = running();
    if (ground.record === null) throw new Error("no record");
    expect(heldOf(ground.record, KEY + SUCCESS)).toBeNull();
    expect(heldSlots(ground.record).size).toBe(0);
    expect(heldSlots(null).size).toBe(0);
    expect(isFinished(ground.record)).toBe(false);
    ground.finish(SUCCESS, token, { kind: "done" });
    expect(ground.life(SUCCESS)).toMatchObject({
      state: "done",
      reason: null,
      detail: null,
      steps: {},
      history: [],
    });
  });
});
