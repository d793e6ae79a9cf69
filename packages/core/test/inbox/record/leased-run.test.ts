import { describe, expect, it } from "vitest";
import { replay } from "../../../src/inbox/record/decisions.ts";
import type { HandlerChange, HandlerState } from "../../../src/inbox/record/handler-state.ts";
import { indexOf } from "../../../src/inbox/record/index-of.ts";
import { isBegunBy } from "../../../src/inbox/record/leased-run.ts";
import { isFinished } from "../../../src/inbox/record/record.ts";
import { dueTimeOf } from "../../../src/inbox/record/schedule.ts";
import { DAY, event, FAILED, KEY, PENDING, RecordUnderTest, running, SUCCESS } from "./record-under-test.ts";

describe("beginning a run", () => {
  it("gives a lease with everything that was accepted", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("PENDING", { amount: "9" }));
    const given = event("SUCCESS");
    tested.accept(given);
    expect(tested.begin(SUCCESS)).toEqual({
      kind: "leased",
      input: {
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
        handlerStates: {},
        untriedHandlers: [],
        claims: [],
        onlyHandlers: null,
        overtaken: [],
        trace: null,
        evenIfExpired: false,
        previousStatus: "PENDING",
        previousAmount: "9",
        replays: 0,
        repeatEffects: false,
        now: 1_000,
        isEarlyAllowed: false,
        lastDelayMs: 0,
        hadTurn: false,
        startedHandler: null,
      },
    });
    expect(tested.slot(SUCCESS)).toMatchObject({ state: "running", runToken: "w" });
    expect(tested.record?.lease).toEqual({
      slot: SUCCESS,
      token: "w",
      until: 1_100,
      originalLengthMs: 100,
    });
  });

  it("marks the first handler as started, if the runner names it", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    const begun = tested.begin(SUCCESS, { firstHandler: () => "h" });
    expect(begun).toMatchObject({ kind: "leased", input: { startedHandler: "h", handlerStates: {} } });
    expect(tested.slot(SUCCESS).work?.handlerStates).toMatchObject({ h: { state: "started", attempts: 1 } });
    tested.endRun(SUCCESS, { kind: "handed-back" }, [{ name: "h", kind: "undone", before: null }]);
    expect(tested.slot(SUCCESS)).toMatchObject({
      state: "waiting",
      work: { handlerStates: {}, dueAt: 1_000 },
    });
  });

  it("of an event that is not recorded finds nothing", () => {
    const tested = new RecordUnderTest();
    expect(tested.begin(SUCCESS)).toEqual({ kind: "missing" });
    tested.accept(event("SUCCESS"));
    expect(tested.begin(FAILED)).toEqual({ kind: "missing" });
  });

  it("waits until the lease of the record has ended, whichever slot has it", () => {
    const tested = running();
    tested.accept(event("FAILED"));
    tested.now = 1_099;
    expect(tested.begin(SUCCESS)).toEqual({ kind: "wait", isRunning: true });
    expect(tested.begin(FAILED)).toEqual({ kind: "wait", isRunning: false });
    expect(tested.next()).toBeNull();
    tested.now = 1_100;
    expect(tested.begin(SUCCESS, { token: "v" })).toMatchObject({ input: { token: "v" } });
  });

  it("of another slot lets the event whose lease has lapsed wait again", () => {
    const tested = running();
    tested.accept(event("FAILED"));
    tested.now = 2_000;
    expect(tested.begin(FAILED)).toMatchObject({ input: { mode: "onHeld", reason: "conflict" } });
    expect(tested.slot(SUCCESS).state).toBe("waiting");
    expect(tested.slot(FAILED).state).toBe("held");
  });

  it("of a SUCCESS ends the PENDING whose lease has lapsed", () => {
    const tested = running(event("PENDING"));
    tested.accept(event("SUCCESS"));
    tested.now = 2_000;
    expect(tested.begin(SUCCESS)).toMatchObject({
      input: { mode: "run", status: "SUCCESS", overtaken: [{ event: "DEPOSIT", status: "PENDING" }] },
    });
    expect(tested.slot(PENDING).state).toBe("stale");
    tested.now = 4_000;
    expect(tested.next()).toMatchObject({ status: "SUCCESS" });
  });

  it("waits for the delay of a retry, unless somebody asks for the run", () => {
    const tested = running();
    tested.endRun(SUCCESS, { kind: "retry", delayMs: 50 });
    tested.now = 1_049;
    expect(tested.begin(SUCCESS)).toEqual({ kind: "wait", isRunning: false });
    expect(tested.next()).toBeNull();
    tested.now = 1_050;
    expect(tested.next()).toMatchObject({ slot: SUCCESS, isEarlyAllowed: false });
    const asked = running();
    asked.endRun(SUCCESS, { kind: "retry", delayMs: 50 });
    expect(asked.begin(SUCCESS, { earlyBecause: "requested" })).toMatchObject({
      kind: "leased",
      input: { isEarlyAllowed: true },
    });
  });

  it("corrects the end of a lease that a clock ahead has dated, and leaves the lease to its owner", () => {
    const tested = running();
    tested.now = 1_000 - 5_000;
    expect(tested.next()).toBeNull();
    expect(tested.record?.lease?.until).toBe(1_100);
    tested.now = -100_000;
    expect(tested.next()).toBeNull();
    expect(tested.record?.lease).toMatchObject({ until: -99_900, originalLengthMs: 100 });
    expect(tested.renew(SUCCESS, -99_950)).toBe(true);
    tested.now = -99_850;
    expect(tested.begin(SUCCESS, { token: "v" })).toMatchObject({ kind: "leased" });
  });

  it("corrects the due times of an event and of its handlers that a clock ahead has dated", () => {
    const tested = running();
    const failed = { kind: "failed", attempt: 1, error: "down" } as const;
    tested.endRun(SUCCESS, { kind: "retry", delayMs: 50 }, [
      { ...failed, name: "first", delayMs: 50 },
      { ...failed, name: "second", delayMs: 3_000 },
    ]);
    tested.now = 1_000 - 5_000;
    expect(tested.next()).toBeNull();
    expect(tested.slot(SUCCESS).work).toMatchObject({ dueAt: 1_050 });
    tested.now = -100_000;
    expect(tested.next()).toBeNull();
    expect(tested.slot(SUCCESS).work).toMatchObject({
      dueAt: -99_950,
      handlerStates: { first: { dueAt: -99_950 }, second: { dueAt: -97_000 } },
    });
    tested.now = -99_950;
    expect(tested.next()).toMatchObject({ slot: SUCCESS });
  });

  it("is possible before its time, even if a clock ahead has dated the last early run", () => {
    const tested = running();
    tested.endRun(SUCCESS, { kind: "retry", delayMs: 20_000 });
    expect(tested.begin(SUCCESS, { earlyBecause: "requested" })).toMatchObject({ kind: "leased" });
    tested.endRun(SUCCESS, { kind: "retry", delayMs: 20_000 });
    tested.now = -100_000;
    tested.next();
    tested.now += 1_000;
    expect(tested.begin(SUCCESS, { earlyBecause: "requested" })).toMatchObject({ kind: "leased" });
  });

  it("can be recognised by its token, also after the end of the run", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    const begun = tested.begin(SUCCESS);
    if (begun.kind !== "leased") throw new Error(begun.kind);
    expect(isBegunBy(tested.record, begun.input)).toBe(true);
    expect(isBegunBy(tested.record, { ...begun.input, token: "v" })).toBe(false);
    expect(isBegunBy(null, begun.input)).toBe(false);
    tested.endRun(SUCCESS, { kind: "done" });
    expect(isBegunBy(tested.record, begun.input)).toBe(true);
  });
});

describe("the next run of a record", () => {
  it("is that of a waiting event before an onHeld handler, and of an older event before a younger one", () => {
    const tested = running(event("PENDING"));
    tested.now = 1_010;
    tested.accept(event("SUCCESS"));
    tested.accept(event("FAILED"));
    tested.endRun(PENDING, { kind: "held", reason: "rejected", detail: null, onHeld: ["held:held"] });
    const taken: unknown[] = [];
    for (let input = tested.next(); input !== null; input = tested.next()) {
      taken.push([input.mode, input.status]);
      tested.endRun(input.slot, input.mode === "onHeld" ? { kind: "stays-held" } : { kind: "done" });
    }
    expect(taken).toEqual([
      ["run", "SUCCESS"],
      ["onHeld", "PENDING"],
      ["onHeld", "FAILED"],
    ]);
  });

  it("is due at the earliest due time of its slots; while there is a lease, at the end of the lease", () => {
    const tested = new RecordUnderTest();
    expect(tested.accept(event("PENDING"), { delayMs: 500 }).outcome).toBe("new");
    const due = (): unknown => (tested.record === null ? null : dueTimeOf(tested.record));
    expect(due()).toEqual({ at: 1_500, originalDelayMs: 500, lane: "usual" });
    tested.begin(PENDING, { earlyBecause: "requested" });
    expect(due()).toEqual({ at: 1_100, originalDelayMs: 100, lane: "usual" });
    tested.endRun(PENDING, { kind: "retry", delayMs: 9_000 });
    tested.now = 1_020;
    tested.accept(event("SUCCESS", { amount: "11" }));
    expect(due()).toEqual({ at: 1_020, originalDelayMs: 0, lane: "usual" });
    tested.next();
    tested.endRun(SUCCESS, { kind: "done" });
    expect(due()).toBeNull();
    expect(tested.record === null ? null : indexOf(KEY, tested.record)).toMatchObject({
      dueAt: null,
      expiresAt: 1_020 + DAY,
      events: [{ state: "finished" }, { state: "finished" }],
    });
  });
});

describe("an early run, which somebody asks for before its time,", () => {
  const FAILED_ONCE: HandlerState = {
    attempts: 1,
    state: "failed",
    dueAt: 6_000,
    delayWhenWrittenMs: 5_000,
    error: "down",
    reason: null,
  };

  /** An event whose handler failed at 1,000, to be tried again at 6,000. */
  function failed(): RecordUnderTest {
    const tested = running();
    const change = { name: "h", kind: "failed", attempt: 1, delayMs: 5_000, error: "down" } as const;
    tested.endRun(SUCCESS, { kind: "retry", delayMs: 5_000 }, [change]);
    return tested;
  }

  /** Begins it, and gives it back as it was after an attempt that failed. */
  function tryEarly(tested: RecordUnderTest, earlyBecause: "requested" | "last" = "requested"): string {
    const begun = tested.begin(SUCCESS, { earlyBecause });
    if (begun.kind !== "leased") return begun.kind;
    const before = { ...FAILED_ONCE, error: "still down" };
    const undone: HandlerChange = { name: "h", kind: "undone", before };
    tested.endRun(SUCCESS, { kind: "retry", delayMs: 6_000 - begun.input.now }, [undone]);
    return begun.input.isEarlyAllowed ? "early" : "due";
  }

  it("begins at once, then at most once a second, however often it is asked for", () => {
    const tested = failed();
    const begun: number[] = [];
    for (tested.now = 1_000; tested.now < 6_000; tested.now += 10) {
      if (tryEarly(tested) === "early") begun.push(tested.now);
    }
    expect(begun).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
    expect(tested.begin(SUCCESS)).toMatchObject({ kind: "leased", input: { isEarlyAllowed: false } });
  });

  it("that fails leaves its error, and changes neither the number of attempts nor the due time", () => {
    const tested = failed();
    for (tested.now = 1_500; tested.now < 6_000; tested.now += 1_000) expect(tryEarly(tested)).toBe("early");
    expect(tested.slot(SUCCESS).work).toMatchObject({
      dueAt: 6_000,
      handlerStates: { h: { ...FAILED_ONCE, error: "still down" } },
    });
    tested.now = 5_999;
    expect(tested.begin(SUCCESS)).toEqual({ kind: "wait", isRunning: false });
  });

  it("counts as an attempt if its process dies", () => {
    const tested = failed();
    tested.begin(SUCCESS, { earlyBecause: "requested" });
    tested.write(SUCCESS, [{ name: "h", kind: "started", attempt: 2 }]);
    tested.now = 6_000;
    expect(tested.begin(SUCCESS)).toMatchObject({
      input: { handlerStates: { h: { attempts: 2, state: "started" } } },
    });
  });

  it("is not limited to one a second if it is the last", () => {
    const tested = failed();
    const attempts = [tryEarly(tested), tryEarly(tested), tryEarly(tested, "last"), tryEarly(tested, "last")];
    expect(attempts).toEqual(["early", "wait", "early", "early"]);
  });

  it("does not delay a replay, which is due at once", () => {
    const tested = failed();
    tested.begin(SUCCESS, { earlyBecause: "last" });
    tested.endRun(SUCCESS, { kind: "held", reason: "rejected", detail: null, onHeld: [] });
    expect(replay(tested.record, KEY + SUCCESS, { by: "me", note: "" }, tested.now)).toBe("decided");
    expect(tested.begin(SUCCESS)).toMatchObject({ kind: "leased" });
  });
});

describe("the run that has the lease", () => {
  it("is the only one that can write: others are told that they have lost it", () => {
    const tested = running();
    const start: HandlerChange = { name: "h", kind: "started", attempt: 1 };
    for (const [slot, token] of [
      [SUCCESS, "v"],
      [FAILED, "w"],
    ] as const) {
      const before = structuredClone(tested.record);
      expect(tested.renew(slot, 1_010, token)).toBe(false);
      expect(tested.write(slot, [start], token)).toBe(false);
      expect(tested.endRun(slot, { kind: "done" }, [], token)).toEqual({ kind: "lost" });
      expect(tested.record).toEqual(before);
    }
    const nothing = new RecordUnderTest();
    expect(nothing.renew(SUCCESS, 1_010)).toBe(false);
    expect(nothing.endRun(SUCCESS, { kind: "done" })).toEqual({ kind: "lost" });
    // One that lapsed, but that nobody took, is still its owner's.
    expect(tested.renew(SUCCESS, 1_200)).toBe(true);
    expect(tested.record?.lease?.until).toBe(1_300);
  });

  it("writes the state of each handler, and the same again if a write is repeated", () => {
    const tested = running();
    const write = (change: HandlerChange): unknown => {
      for (let time = 0; time < 2; time++) expect(tested.write(SUCCESS, [change])).toBe(true);
      return tested.slot(SUCCESS).work?.handlerStates.h;
    };
    const first = {
      attempts: 1,
      state: "started",
      dueAt: 0,
      delayWhenWrittenMs: 0,
      error: null,
      reason: null,
    };
    const name = "h";
    expect(write({ name, kind: "started", attempt: 1 })).toEqual(first);
    const failed = { ...first, state: "failed", dueAt: 1_050, delayWhenWrittenMs: 50, error: "down" };
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
  it("as done keeps only what recognises copies, for as long as if the event had just been delivered", () => {
    const tested = running();
    tested.now = 7_000;
    expect(tested.endRun(SUCCESS, { kind: "done" })).toEqual({
      kind: "ended",
      overtaken: [],
      claimsToClose: null,
      nextDue: null,
    });
    expect(tested.slot(SUCCESS)).toMatchObject({ state: "done", work: null });
    expect(tested.record).toMatchObject({ lease: null, expiresAt: 7_000 + DAY });
    expect(tested.record !== null && isFinished(tested.record)).toBe(true);
    expect(tested.begin(SUCCESS)).toEqual({ kind: "finished", state: "done" });
    // Its own end, met again, is no loss of the lease.
    expect(tested.endRun(SUCCESS, { kind: "done" })).toMatchObject({ kind: "ended" });
    expect(tested.endRun(SUCCESS, { kind: "done" }, [], "v")).toEqual({ kind: "lost" });
  });

  it("as retry lets the event wait again, and writes its due time with its delay", () => {
    const tested = running();
    tested.endRun(SUCCESS, { kind: "retry", delayMs: 50 }, [{ name: "h", kind: "done", attempt: 1 }]);
    expect(tested.slot(SUCCESS)).toMatchObject({
      state: "waiting",
      work: { dueAt: 1_050, originalDelayMs: 50 },
    });
    expect(tested.record !== null && isFinished(tested.record)).toBe(false);
    expect(tested.begin(SUCCESS, { earlyBecause: "requested" })).toMatchObject({
      input: { handlerStates: { h: { state: "done" } } },
    });
  });

  it("as held writes the reason, and no states of onHeld handlers", () => {
    const tested = running();
    tested.now = 1_050;
    tested.endRun(SUCCESS, { kind: "held", reason: "rejected", detail: "no", onHeld: ["held:held"] }, [
      { name: "h", kind: "done", attempt: 1 },
      { name: "held:h", kind: "done", attempt: 1 },
    ]);
    expect(tested.slot(SUCCESS)).toMatchObject({ state: "held", isOnHeldDone: false });
    expect(tested.slot(SUCCESS).work).toMatchObject({
      reason: "rejected",
      detail: "no",
      heldAt: 1_050,
      dueAt: 1_050,
      history: [
        { at: 1_000, what: "accepted" },
        { at: 1_050, what: "held: rejected" },
      ],
    });
    expect(Object.keys(tested.slot(SUCCESS).work?.handlerStates ?? {})).toEqual(["h"]);
    expect(tested.record !== null && isFinished(tested.record)).toBe(false);
  });

  it("as held gives the onHeld handlers a lease until they are done, and the event stays held", () => {
    const tested = running();
    tested.endRun(SUCCESS, { kind: "held", reason: "rejected", detail: null, onHeld: ["held:held"] });
    for (const outcome of [
      { kind: "retry", delayMs: 0 },
      { kind: "handed-back" },
      { kind: "stays-held" },
    ] as const) {
      expect(tested.next()).toMatchObject({ mode: "onHeld", reason: "rejected" });
      expect(tested.endRun(SUCCESS, outcome)).toMatchObject({ kind: "ended" });
      expect(tested.slot(SUCCESS).state).toBe("held");
    }
    expect(tested.next()).toBeNull();
    expect(tested.begin(SUCCESS)).toEqual({ kind: "finished", state: "held" });
    const untold = running();
    untold.endRun(SUCCESS, { kind: "held", reason: "rejected", detail: null, onHeld: [] });
    expect(untold.next()).toBeNull();
  });

  it("as retry ends a PENDING that a SUCCESS has overtaken, and names it", () => {
    const tested = running(event("PENDING"));
    tested.accept(event("SUCCESS"));
    const finished = tested.endRun(PENDING, { kind: "retry", delayMs: 50 });
    expect(finished).toMatchObject({ kind: "ended", overtaken: [{ eventId: KEY + PENDING }] });
    expect(tested.slot(PENDING)).toMatchObject({ state: "stale", work: null });
    expect(tested.next()).toMatchObject({ slot: SUCCESS });
  });
});
