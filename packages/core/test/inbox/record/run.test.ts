import { describe, expect, it } from "vitest";
import { replay } from "../../../src/inbox/record/decisions.ts";
import { indexOf } from "../../../src/inbox/record/index-of.ts";
import type { Step, StepChange } from "../../../src/inbox/record/lease.ts";
import { isFinished } from "../../../src/inbox/record/record.ts";
import { isBegunBy } from "../../../src/inbox/record/run.ts";
import { dueOf } from "../../../src/inbox/record/schedule.ts";
import { DAY, event, FAILED, Ground, KEY, PENDING, running, SUCCESS } from "./ground.ts";

describe("taking an event", () => {
  it("gives a lease with everything that was accepted", () => {
    const ground = new Ground();
    ground.accept(event("PENDING", { amount: "9" }));
    const given = event("SUCCESS");
    ground.accept(given);
    expect(ground.begin(SUCCESS)).toEqual({
      kind: "leased",
      lease: {
        key: KEY,
        slot: SUCCESS,
        eventId: KEY + SUCCESS,
        token: "w",
        mode: "run",
        verdict: "run",
        reason: null,
        detail: null,
        id: "tx-1",
        name: "DEPOSIT",
        status: "SUCCESS",
        referenceId: "o-1",
        delivery: given.delivery,
        steps: {},
        handlers: [],
        claims: [],
        only: null,
        overtaken: [],
        trace: null,
        evenIfExpired: false,
        previousStatus: "PENDING",
        previousAmount: "9",
        replays: 0,
        again: false,
        now: 1_000,
        force: false,
        hadTurn: false,
        started: null,
      },
    });
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "running", token: "w" });
    expect(ground.record?.lease).toEqual({ slot: SUCCESS, token: "w", until: 1_100, lengthMs: 100 });
  });

  it("marks its first handler as started, where that may be written with it", () => {
    const ground = new Ground();
    ground.accept(event("SUCCESS"));
    const begun = ground.begin(SUCCESS, { firstStep: () => "h" });
    expect(begun).toMatchObject({ kind: "leased", lease: { started: "h", steps: {} } });
    expect(ground.slot(SUCCESS).work?.steps).toMatchObject({ h: { state: "started", attempts: 1 } });
    ground.finish(SUCCESS, { kind: "released" }, [{ name: "h", kind: "undone", before: null }]);
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "waiting", work: { steps: {}, dueAt: 1_000 } });
  });

  it("finds nothing where there is none", () => {
    const ground = new Ground();
    expect(ground.begin(SUCCESS)).toEqual({ kind: "missing" });
    ground.accept(event("SUCCESS"));
    expect(ground.begin(FAILED)).toEqual({ kind: "missing" });
  });

  it("waits for the lease of another slot, and for its own", () => {
    const ground = running();
    ground.accept(event("FAILED"));
    ground.now = 1_099;
    expect(ground.begin(SUCCESS)).toEqual({ kind: "wait", running: true });
    expect(ground.begin(FAILED)).toEqual({ kind: "wait", running: false });
    expect(ground.next()).toBeNull();
    ground.now = 1_100;
    expect(ground.begin(SUCCESS, { token: "v" })).toMatchObject({ lease: { token: "v" } });
  });

  it("of another slot makes that wait again whose lease lapsed", () => {
    const ground = running();
    ground.accept(event("FAILED"));
    ground.now = 2_000;
    expect(ground.begin(FAILED)).toMatchObject({ lease: { mode: "tell", reason: "conflict" } });
    expect(ground.slot(SUCCESS).state).toBe("waiting");
    expect(ground.slot(FAILED).state).toBe("held");
  });

  it("of what follows a PENDING ends the PENDING, if its lease has lapsed", () => {
    const ground = running(event("PENDING"));
    ground.accept(event("SUCCESS"));
    ground.now = 2_000;
    expect(ground.begin(SUCCESS)).toMatchObject({
      lease: { mode: "run", status: "SUCCESS", overtaken: [{ event: "DEPOSIT", status: "PENDING" }] },
    });
    expect(ground.slot(PENDING).state).toBe("stale");
    ground.now = 4_000;
    expect(ground.next()).toMatchObject({ status: "SUCCESS" });
  });

  it("waits for its delay, unless it is forced", () => {
    const ground = running();
    ground.finish(SUCCESS, { kind: "retry", delayMs: 50 });
    ground.now = 1_049;
    expect(ground.begin(SUCCESS)).toEqual({ kind: "wait", running: false });
    expect(ground.next()).toBeNull();
    ground.now = 1_050;
    expect(ground.next()).toMatchObject({ slot: SUCCESS, force: false });
    const asked = running();
    asked.finish(SUCCESS, { kind: "retry", delayMs: 50 });
    expect(asked.begin(SUCCESS, { force: "asked" })).toMatchObject({
      kind: "leased",
      lease: { force: true },
    });
  });

  it("pulls a lease back that is further away than when it was set, and leaves it to its owner", () => {
    const ground = running();
    ground.now = 1_000 - 5_000;
    expect(ground.next()).toBeNull();
    expect(ground.record?.lease?.until).toBe(1_100);
    ground.now = -100_000;
    expect(ground.next()).toBeNull();
    expect(ground.record?.lease).toMatchObject({ until: -99_900, lengthMs: 100 });
    expect(ground.renew(SUCCESS, -99_950)).toBe(true);
    ground.now = -99_850;
    expect(ground.begin(SUCCESS, { token: "v" })).toMatchObject({ kind: "leased" });
  });

  it("pulls back when an event and each of its handlers are to be tried again", () => {
    const ground = running();
    const failed = { kind: "failed", attempt: 1, error: "down" } as const;
    ground.finish(SUCCESS, { kind: "retry", delayMs: 50 }, [
      { ...failed, name: "first", delayMs: 50 },
      { ...failed, name: "second", delayMs: 3_000 },
    ]);
    ground.now = 1_000 - 5_000;
    expect(ground.next()).toBeNull();
    expect(ground.slot(SUCCESS).work).toMatchObject({ dueAt: 1_050 });
    ground.now = -100_000;
    expect(ground.next()).toBeNull();
    expect(ground.slot(SUCCESS).work).toMatchObject({
      dueAt: -99_950,
      steps: { first: { dueAt: -99_950 }, second: { dueAt: -97_000 } },
    });
    ground.now = -99_950;
    expect(ground.next()).toMatchObject({ slot: SUCCESS });
  });

  it("is not kept from an early run by one that a wrong clock has dated ahead", () => {
    const ground = running();
    ground.finish(SUCCESS, { kind: "retry", delayMs: 20_000 });
    expect(ground.begin(SUCCESS, { force: "asked" })).toMatchObject({ kind: "leased" });
    ground.finish(SUCCESS, { kind: "retry", delayMs: 20_000 });
    ground.now = -100_000;
    ground.next();
    ground.now += 1_000;
    expect(ground.begin(SUCCESS, { force: "asked" })).toMatchObject({ kind: "leased" });
  });

  it("knows its own write by its token, also past the end of the run", () => {
    const ground = new Ground();
    ground.accept(event("SUCCESS"));
    const begun = ground.begin(SUCCESS);
    if (begun.kind !== "leased") throw new Error(begun.kind);
    expect(isBegunBy(ground.record, begun.lease)).toBe(true);
    expect(isBegunBy(ground.record, { ...begun.lease, token: "v" })).toBe(false);
    expect(isBegunBy(null, begun.lease)).toBe(false);
    ground.finish(SUCCESS, { kind: "done" });
    expect(isBegunBy(ground.record, begun.lease)).toBe(true);
  });
});

describe("what is next of a record", () => {
  it("runs before it tells, PENDING before what follows it, the older before the younger", () => {
    const ground = running(event("PENDING"));
    ground.now = 1_010;
    ground.accept(event("SUCCESS"));
    ground.accept(event("FAILED"));
    ground.finish(PENDING, { kind: "held", reason: "rejected", detail: null, tell: ["held:held"] });
    const taken: unknown[] = [];
    for (let lease = ground.next(); lease !== null; lease = ground.next()) {
      taken.push([lease.mode, lease.status]);
      ground.finish(lease.slot, lease.mode === "tell" ? { kind: "told" } : { kind: "done" });
    }
    expect(taken).toEqual([
      ["run", "SUCCESS"],
      ["tell", "PENDING"],
      ["tell", "FAILED"],
    ]);
  });

  it("is due at the earliest time of its slots, and under a lease at its end and nothing else", () => {
    const ground = new Ground();
    expect(ground.accept(event("PENDING"), { delayMs: 500 }).outcome).toBe("new");
    const due = (): unknown => (ground.record === null ? null : dueOf(ground.record));
    expect(due()).toEqual({ at: 1_500, inMs: 500, lane: "usual" });
    ground.begin(PENDING, { force: "asked" });
    expect(due()).toEqual({ at: 1_100, inMs: 100, lane: "usual" });
    ground.finish(PENDING, { kind: "retry", delayMs: 9_000 });
    ground.now = 1_020;
    ground.accept(event("SUCCESS", { amount: "11" }));
    expect(due()).toEqual({ at: 1_020, inMs: 0, lane: "usual" });
    ground.next();
    ground.finish(SUCCESS, { kind: "done" });
    expect(due()).toBeNull();
    expect(ground.record === null ? null : indexOf(KEY, ground.record)).toMatchObject({
      dueAt: null,
      expiresAt: 1_020 + DAY,
      events: [{ state: "finished" }, { state: "finished" }],
    });
  });
});

describe("before its time", () => {
  const FAILED_ONCE: Step = {
    attempts: 1,
    state: "failed",
    dueAt: 6_000,
    dueInMs: 5_000,
    error: "down",
    reason: null,
  };

  /** An event whose handler failed at 1,000, to be tried again at 6,000. */
  function failed(): Ground {
    const ground = running();
    const change = { name: "h", kind: "failed", attempt: 1, delayMs: 5_000, error: "down" } as const;
    ground.finish(SUCCESS, { kind: "retry", delayMs: 5_000 }, [change]);
    return ground;
  }

  /** Begins it, and gives it back as it was after an attempt that failed. */
  function tryEarly(ground: Ground, force: "asked" | "last" = "asked"): string {
    const begun = ground.begin(SUCCESS, { force });
    if (begun.kind !== "leased") return begun.kind;
    const before = { ...FAILED_ONCE, error: "still down" };
    const undone: StepChange = { name: "h", kind: "undone", before };
    ground.finish(SUCCESS, { kind: "retry", delayMs: 6_000 - begun.lease.now }, [undone]);
    return begun.lease.force ? "forced" : "due";
  }

  it("it begins at once when it is asked for, then at most once a second, however often that is", () => {
    const ground = failed();
    const begun: number[] = [];
    for (ground.now = 1_000; ground.now < 6_000; ground.now += 10) {
      if (tryEarly(ground) === "forced") begun.push(ground.now);
    }
    expect(begun).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
    expect(ground.begin(SUCCESS)).toMatchObject({ kind: "leased", lease: { force: false } });
  });

  it("it leaves no trace of an attempt that failed but for its error: neither in the count nor in the time", () => {
    const ground = failed();
    for (ground.now = 1_500; ground.now < 6_000; ground.now += 1_000) expect(tryEarly(ground)).toBe("forced");
    expect(ground.slot(SUCCESS).work).toMatchObject({
      dueAt: 6_000,
      steps: { h: { ...FAILED_ONCE, error: "still down" } },
    });
    ground.now = 5_999;
    expect(ground.begin(SUCCESS)).toEqual({ kind: "wait", running: false });
  });

  it("it counts an attempt in which the process died", () => {
    const ground = failed();
    ground.begin(SUCCESS, { force: "asked" });
    ground.write(SUCCESS, [{ name: "h", kind: "started", attempt: 2 }]);
    ground.now = 6_000;
    expect(ground.begin(SUCCESS)).toMatchObject({
      lease: { steps: { h: { attempts: 2, state: "started" } } },
    });
  });

  it("it is not rationed where there will be no later one", () => {
    const ground = failed();
    const attempts = [tryEarly(ground), tryEarly(ground), tryEarly(ground, "last"), tryEarly(ground, "last")];
    expect(attempts).toEqual(["forced", "wait", "forced", "forced"]);
  });

  it("it is asked for anew by a replay, which is due at once", () => {
    const ground = failed();
    ground.begin(SUCCESS, { force: "last" });
    ground.finish(SUCCESS, { kind: "held", reason: "rejected", detail: null, tell: [] });
    expect(replay(ground.record, KEY + SUCCESS, { by: "me", note: "" }, ground.now)).toBe("decided");
    expect(ground.begin(SUCCESS)).toMatchObject({ kind: "leased" });
  });
});

describe("the owner of a lease", () => {
  it("alone writes: others have lost it", () => {
    const ground = running();
    const start: StepChange = { name: "h", kind: "started", attempt: 1 };
    for (const [slot, token] of [
      [SUCCESS, "v"],
      [FAILED, "w"],
    ] as const) {
      const before = structuredClone(ground.record);
      expect(ground.renew(slot, 1_010, token)).toBe(false);
      expect(ground.write(slot, [start], token)).toBe(false);
      expect(ground.finish(slot, { kind: "done" }, [], token)).toEqual({ kind: "lost" });
      expect(ground.record).toEqual(before);
    }
    const nothing = new Ground();
    expect(nothing.renew(SUCCESS, 1_010)).toBe(false);
    expect(nothing.finish(SUCCESS, { kind: "done" })).toEqual({ kind: "lost" });
    // One that lapsed, but that nobody took, is still its owner's.
    expect(ground.renew(SUCCESS, 1_200)).toBe(true);
    expect(ground.record?.lease?.until).toBe(1_300);
  });

  it("writes what becomes of each handler, the same however often", () => {
    const ground = running();
    const write = (change: StepChange): unknown => {
      for (let time = 0; time < 2; time++) expect(ground.write(SUCCESS, [change])).toBe(true);
      return ground.slot(SUCCESS).work?.steps.h;
    };
    const first = { attempts: 1, state: "started", dueAt: 0, dueInMs: 0, error: null, reason: null };
    const name = "h";
    expect(write({ name, kind: "started", attempt: 1 })).toEqual(first);
    const failed = { ...first, state: "failed", dueAt: 1_050, dueInMs: 50, error: "down" };
    expect(write({ name, kind: "failed", attempt: 1, error: "down", delayMs: 50 })).toEqual(failed);
    expect(write({ name, kind: "started", attempt: 2 })).toEqual({ ...first, attempts: 2, error: "down" });
    expect(write({ name, kind: "given-up", attempt: 2, error: "no", reason: "exhausted" })).toEqual({
      ...first,
      attempts: 2,
      state: "given-up",
      error: "no",
      reason: "exhausted",
    });
    expect(write({ name, kind: "done", attempt: 2 })).toEqual({
      ...first,
      attempts: 2,
      state: "done",
      error: "no",
    });
    expect(write({ name, kind: "undone", before: null })).toBeUndefined();
  });
});

describe("the end of a run", () => {
  it("done: only what recognises copies stays, for as long as if it had just been delivered", () => {
    const ground = running();
    ground.now = 7_000;
    expect(ground.finish(SUCCESS, { kind: "done" })).toEqual({ kind: "ended", overtaken: [], closing: null });
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "done", work: null });
    expect(ground.record).toMatchObject({ lease: null, expiresAt: 7_000 + DAY });
    expect(ground.record !== null && isFinished(ground.record)).toBe(true);
    expect(ground.begin(SUCCESS)).toEqual({ kind: "finished", state: "done" });
    // Its own end, met again, is no loss of the lease.
    expect(ground.finish(SUCCESS, { kind: "done" })).toMatchObject({ kind: "ended" });
    expect(ground.finish(SUCCESS, { kind: "done" }, [], "v")).toEqual({ kind: "lost" });
  });

  it("retry: it waits again, and what is due is told with its length", () => {
    const ground = running();
    ground.finish(SUCCESS, { kind: "retry", delayMs: 50 }, [{ name: "h", kind: "done", attempt: 1 }]);
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "waiting", work: { dueAt: 1_050, dueInMs: 50 } });
    expect(ground.record !== null && isFinished(ground.record)).toBe(false);
    expect(ground.begin(SUCCESS, { force: "asked" })).toMatchObject({
      lease: { steps: { h: { state: "done" } } },
    });
  });

  it("held: with its reason, and without the steps of handlers that are told of it", () => {
    const ground = running();
    ground.now = 1_050;
    ground.finish(SUCCESS, { kind: "held", reason: "rejected", detail: "no", tell: ["held:held"] }, [
      { name: "h", kind: "done", attempt: 1 },
      { name: "held:h", kind: "done", attempt: 1 },
    ]);
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "held", told: false });
    expect(ground.slot(SUCCESS).work).toMatchObject({
      reason: "rejected",
      detail: "no",
      heldAt: 1_050,
      dueAt: 1_050,
      history: [
        { at: 1_000, what: "accepted" },
        { at: 1_050, what: "held: rejected" },
      ],
    });
    expect(Object.keys(ground.slot(SUCCESS).work?.steps ?? {})).toEqual(["h"]);
    expect(ground.record !== null && isFinished(ground.record)).toBe(false);
  });

  it("held: whoever is to be told of it is leased once; a retry of that leaves it held", () => {
    const ground = running();
    ground.finish(SUCCESS, { kind: "held", reason: "rejected", detail: null, tell: ["held:held"] });
    for (const ending of [{ kind: "retry", delayMs: 0 }, { kind: "released" }, { kind: "told" }] as const) {
      expect(ground.next()).toMatchObject({ mode: "tell", reason: "rejected" });
      expect(ground.finish(SUCCESS, ending)).toMatchObject({ kind: "ended" });
      expect(ground.slot(SUCCESS).state).toBe("held");
    }
    expect(ground.next()).toBeNull();
    expect(ground.begin(SUCCESS)).toEqual({ kind: "finished", state: "held" });
    const untold = running();
    untold.finish(SUCCESS, { kind: "held", reason: "rejected", detail: null, tell: [] });
    expect(untold.next()).toBeNull();
  });

  it("ends a PENDING whose retry would come after its end, and tells of it", () => {
    const ground = running(event("PENDING"));
    ground.accept(event("SUCCESS"));
    const finished = ground.finish(PENDING, { kind: "retry", delayMs: 50 });
    expect(finished).toMatchObject({ kind: "ended", overtaken: [{ eventId: KEY + PENDING }] });
    expect(ground.slot(PENDING)).toMatchObject({ state: "stale", work: null });
    expect(ground.next()).toMatchObject({ slot: SUCCESS });
  });
});
