import { describe, expect, it } from "vitest";
import { finish, heldSlots, isFinished, renew, replay, step } from "../src/inbox/steps.ts";
import { DAY, event, FAILED, Ground, KEY, PENDING, running, SUCCESS } from "./record-ground.ts";

describe("taking an event", () => {
  it("gives a lease with everything that was accepted", () => {
    const ground = new Ground();
    ground.accept(event("PENDING", { amount: "9" }));
    const given = event("SUCCESS");
    ground.accept(given);
    expect(ground.begin(SUCCESS)).toEqual({
      kind: "leased",
      lease: {
        job: { eventId: KEY + SUCCESS, replay: 0 },
        token: "1:w",
        mode: "run",
        verdict: "run",
        reason: null,
        detail: null,
        id: "tx-1",
        name: "DEPOSIT",
        status: "SUCCESS",
        delivery: given.delivery,
        steps: {},
        only: null,
        evenIfExpired: false,
        previousStatus: "PENDING",
        previousAmount: "9",
        now: 1_000,
        force: false,
      },
    });
    expect(ground.slot(SUCCESS).state).toBe("running");
    expect(ground.record).toMatchObject({ fence: 1, lease: { slot: SUCCESS, token: "1:w", until: 1_100 } });
  });

  it("finds nothing where there is none", () => {
    const ground = new Ground();
    expect(ground.begin(SUCCESS)).toEqual({ kind: "missing" });
    ground.accept(event("SUCCESS"));
    expect(ground.begin(FAILED)).toEqual({ kind: "missing" });
  });

  it("is refused to a copy of another replay", () => {
    const ground = new Ground();
    ground.accept(event("SUCCESS"));
    expect(ground.begin(SUCCESS, { replay: 1 })).toEqual({
      kind: "finished",
      state: "waiting",
      overtaken: null,
    });
  });

  it("waits for the lease of another slot, and for its own", () => {
    const { ground } = running();
    ground.accept(event("FAILED"));
    ground.now = 1_040;
    expect(ground.begin(SUCCESS)).toEqual({ kind: "wait", ms: 60, running: true });
    expect(ground.begin(FAILED)).toEqual({ kind: "wait", ms: 60, running: false });
    ground.now = 1_099;
    expect(ground.begin(SUCCESS)).toMatchObject({ kind: "wait", ms: 1 });
    ground.now = 1_100;
    expect(ground.begin(SUCCESS, {}, null, "v")).toMatchObject({ lease: { token: "2:v" } });
  });

  it("of another slot makes that wait again whose lease lapsed", () => {
    const { ground } = running(event("SUCCESS"));
    ground.accept(event("FAILED"));
    ground.now = 2_000;
    expect(ground.begin(FAILED)).toMatchObject({ lease: { mode: "tell", reason: "conflict" } });
    expect(ground.slot(SUCCESS).state).toBe("waiting");
    expect(ground.slot(FAILED).state).toBe("held");
    expect(ground.record?.lease).toMatchObject({ slot: FAILED, token: "2:w" });
  });

  it("waits for its delay, unless it is forced", () => {
    const { ground, token } = running();
    ground.finish(SUCCESS, token, { kind: "retry", delayMs: 50 });
    ground.now = 1_020;
    expect(ground.begin(SUCCESS)).toEqual({ kind: "wait", ms: 30, running: false });
    expect(ground.begin(SUCCESS, {}, "asked")).toMatchObject({ kind: "leased", lease: { force: true } });
    const other = running();
    other.ground.finish(SUCCESS, other.token, { kind: "retry", delayMs: 50 });
    other.ground.now = 1_050;
    expect(other.ground.begin(SUCCESS)).toMatchObject({ kind: "leased" });
  });

  describe("before its time", () => {
    /** An event whose handler failed at 1,000, to be tried again at 6,000. */
    function failed(): Ground {
      const { ground, token } = running();
      step(ground.record, SUCCESS, token, "h", { kind: "started" }, ground.now);
      step(ground.record, SUCCESS, token, "h", { kind: "failed", delayMs: 5_000, error: "down" }, ground.now);
      ground.finish(SUCCESS, token, { kind: "retry", delayMs: 5_000 });
      return ground;
    }
    /** Begins it, and gives it back as it was after a try that failed. */
    function tryEarly(ground: Ground, force: "asked" | "last" = "asked"): string {
      const begun = ground.begin(SUCCESS, {}, force);
      if (begun.kind !== "leased") return begun.kind;
      const { token, steps, now } = begun.lease;
      step(ground.record, SUCCESS, token, "h", { kind: "started" }, now);
      const before = steps.h;
      if (before === undefined) throw new Error("it has no step");
      step(ground.record, SUCCESS, token, "h", { kind: "failed-early", before, error: "still down" }, now);
      ground.finish(SUCCESS, token, { kind: "retry", delayMs: 6_000 - now });
      return begun.lease.force ? "forced" : "due";
    }

    it("begins at once when it is asked for, then at most once a second, however often that is", () => {
      const ground = failed();
      const begun: number[] = [];
      for (ground.now = 1_000; ground.now < 6_000; ground.now += 10) {
        if (tryEarly(ground) === "forced") begun.push(ground.now);
      }
      expect(begun).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
      expect(ground.begin(SUCCESS)).toMatchObject({ kind: "leased", lease: { force: false } });
    });

    it("leaves no trace of a try that failed but for its error: neither in the count nor in the time", () => {
      const ground = failed();
      for (ground.now = 1_500; ground.now < 6_000; ground.now += 1_000)
        expect(tryEarly(ground)).toBe("forced");
      expect(ground.slot(SUCCESS).work).toMatchObject({
        dueAt: 6_000,
        steps: { h: { tries: 1, state: "failed", dueAt: 6_000, error: "still down", reason: null } },
      });
      ground.now = 5_999;
      expect(ground.begin(SUCCESS)).toEqual({ kind: "wait", ms: 1, running: false });
    });

    it("counts a try in which the process died", () => {
      const ground = failed();
      const begun = ground.begin(SUCCESS, {}, "asked");
      if (begun.kind !== "leased") throw new Error(begun.kind);
      step(ground.record, SUCCESS, begun.lease.token, "h", { kind: "started" }, ground.now);
      ground.now = 6_000;
      expect(ground.begin(SUCCESS)).toMatchObject({
        lease: { steps: { h: { tries: 2, state: "started" } } },
      });
    });

    it("leaves alone, where another handler is due, those that had their early try in this second", () => {
      const { ground, token } = running();
      for (const [name, delayMs] of [
        ["soon", 100],
        ["late", 9_000],
      ] as const) {
        step(ground.record, SUCCESS, token, name, { kind: "started" }, ground.now);
        step(ground.record, SUCCESS, token, name, { kind: "failed", delayMs, error: "no" }, ground.now);
      }
      ground.finish(SUCCESS, token, { kind: "retry", delayMs: 100 });
      for (const [now, force] of [
        [1_200, true],
        [1_300, false],
        [2_200, true],
      ] as const) {
        ground.now = now;
        const begun = ground.begin(SUCCESS, {}, "asked");
        expect(begun).toMatchObject({ kind: "leased", lease: { force } });
        if (begun.kind === "leased") ground.finish(SUCCESS, begun.lease.token, { kind: "retry", delayMs: 0 });
      }
    });

    it("is not rationed where there will be no later one", () => {
      const ground = failed();
      expect([
        tryEarly(ground),
        tryEarly(ground),
        tryEarly(ground, "last"),
        tryEarly(ground, "last"),
      ]).toEqual(["forced", "wait", "forced", "forced"]);
    });

    it("is asked for anew by a replay, which is due at once", () => {
      const ground = failed();
      tryEarly(ground);
      const again = ground.begin(SUCCESS, {}, "last");
      if (again.kind !== "leased") throw new Error(again.kind);
      ground.finish(SUCCESS, again.lease.token, {
        kind: "held",
        reason: "rejected",
        detail: null,
        tell: false,
      });
      const { record } = ground;
      expect(replay(record, SUCCESS, KEY + SUCCESS, { by: "me", note: "" }, ground.now)?.replay).toBe(1);
      expect(ground.begin(SUCCESS, { replay: 1 })).toMatchObject({ kind: "leased" });
    });
  });

  it("of a PENDING that was overtaken ends it, and says which one it was", () => {
    const ground = new Ground();
    ground.accept(event("PENDING"));
    ground.accept(event("SUCCESS"));
    expect(ground.begin(PENDING)).toEqual({
      kind: "finished",
      state: "stale",
      overtaken: {
        flow: "payments",
        tenant: "t",
        eventId: KEY + PENDING,
        id: "tx-1",
        event: "DEPOSIT",
        status: "PENDING",
        referenceId: "o-1",
      },
    });
    expect(ground.slot(PENDING)).toMatchObject({ state: "stale", work: null });
    expect(ground.begin(PENDING)).toEqual({ kind: "finished", state: "stale", overtaken: null });
  });
});

describe("the owner of a lease", () => {
  it("alone writes: others have lost it", () => {
    const { ground, token } = running();
    const { record } = ground;
    for (const [slot, other] of [
      [SUCCESS, "1:v"],
      [FAILED, token],
    ] as const) {
      expect(renew(record, slot, other, 100, 1_010)).toBe("lost");
      expect(step(record, slot, other, "h", { kind: "started" }, 1_010)).toBe("lost");
      expect(ground.finish(slot, other, { kind: "done" })).toEqual({ fenced: "lost", next: [] });
    }
    expect(renew(null, SUCCESS, token, 100, 1_010)).toBe("lost");
    expect(finish(null, SUCCESS, { eventId: "", replay: 0 }, token, { kind: "done" }, 0).fenced).toBe("lost");
    expect(record?.lease?.until).toBe(1_100);
    expect(renew(record, SUCCESS, token, 100, 1_200)).toBe("ok");
    expect(record?.lease?.until).toBe(1_300);
  });

  it("writes what becomes of each handler", () => {
    const { ground, token } = running();
    const write = (change: Parameters<typeof step>[4]): unknown => {
      expect(step(ground.record, SUCCESS, token, "h", change, 1_010)).toBe("ok");
      return ground.slot(SUCCESS).work?.steps.h;
    };
    const first = { tries: 1, state: "started", dueAt: 0, error: null, reason: null };
    expect(write({ kind: "started" })).toEqual(first);
    const failed = { ...first, state: "failed", dueAt: 1_060, error: "down" };
    expect(write({ kind: "failed", error: "down", delayMs: 50 })).toEqual(failed);
    expect(write({ kind: "started" })).toEqual({ ...first, tries: 2, error: "down" });
    expect(write({ kind: "given-up", error: "no", reason: "exhausted" })).toEqual({
      ...first,
      tries: 2,
      state: "given-up",
      error: "no",
      reason: "exhausted",
    });
    expect(write({ kind: "done" })).toEqual({ ...first, tries: 2, state: "done", error: "no" });
  });
});

describe("the end of a run", () => {
  it("done: only what recognises copies stays, for as long as if it had just been delivered", () => {
    const { ground, token } = running();
    ground.now = 7_000;
    expect(ground.finish(SUCCESS, token, { kind: "done" })).toEqual({ fenced: "ok", next: [] });
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "done", work: null });
    expect(ground.record).toMatchObject({ lease: null, expiresAt: 7_000 + DAY });
    expect(ground.record !== null && isFinished(ground.record)).toBe(true);
    expect(ground.begin(SUCCESS)).toEqual({ kind: "finished", state: "done", overtaken: null });
  });

  it("retry and released: it waits again", () => {
    const { ground, token } = running();
    step(ground.record, SUCCESS, token, "h", { kind: "done" }, 1_000);
    const { next } = ground.finish(SUCCESS, token, { kind: "retry", delayMs: 50 });
    expect(next).toEqual([]);
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "waiting", work: { dueAt: 1_050 } });
    expect(ground.record !== null && isFinished(ground.record)).toBe(false);
    expect(ground.begin(SUCCESS, {}, "asked")).toMatchObject({ lease: { steps: { h: { state: "done" } } } });
    const other = running();
    other.ground.finish(SUCCESS, other.token, { kind: "released" });
    expect(other.ground.slot(SUCCESS)).toMatchObject({ state: "waiting", work: { dueAt: 0 } });
    expect(other.ground.record?.lease).toBeNull();
  });

  it("held: with its reason, and without the steps of handlers that are told of it", () => {
    const { ground, token } = running();
    step(ground.record, SUCCESS, token, "h", { kind: "done" }, 1_000);
    step(ground.record, SUCCESS, token, "held:h", { kind: "done" }, 1_000);
    ground.now = 1_050;
    ground.finish(SUCCESS, token, { kind: "held", reason: "rejected", detail: "no", tell: true });
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "held", told: false });
    expect(ground.slot(SUCCESS).work).toMatchObject({
      reason: "rejected",
      detail: "no",
      heldAt: 1_050,
      dueAt: 0,
      history: [
        { at: 1_000, what: "accepted" },
        { at: 1_050, what: "held: rejected" },
      ],
    });
    expect(Object.keys(ground.slot(SUCCESS).work?.steps ?? {})).toEqual(["h"]);
    expect([...heldSlots(ground.record)]).toEqual([SUCCESS]);
    expect(ground.record !== null && isFinished(ground.record)).toBe(false);
  });

  it("held: whoever is to be told of it is leased once; a retry of that leaves it held", () => {
    const { ground, token } = running();
    ground.finish(SUCCESS, token, { kind: "held", reason: "rejected", detail: null, tell: true });
    for (const ending of [{ kind: "retry", delayMs: 0 }, { kind: "released" }] as const) {
      const begun = ground.begin(SUCCESS);
      if (begun.kind !== "leased") throw new Error(begun.kind);
      expect(begun.lease).toMatchObject({ mode: "tell", reason: "rejected" });
      expect(ground.finish(SUCCESS, begun.lease.token, ending)).toEqual({ fenced: "ok", next: [] });
      expect(ground.slot(SUCCESS).state).toBe("held");
    }
    const again = ground.begin(SUCCESS);
    if (again.kind !== "leased") throw new Error(again.kind);
    ground.finish(SUCCESS, again.lease.token, { kind: "told" });
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "held", told: true });
    expect(ground.begin(SUCCESS)).toEqual({ kind: "finished", state: "held", overtaken: null });
    const untold = running();
    untold.ground.finish(SUCCESS, untold.token, {
      kind: "held",
      reason: "rejected",
      detail: null,
      tell: false,
    });
    expect(untold.ground.slot(SUCCESS).told).toBe(true);
  });

  it("names the jobs beside it that waited, and no others", () => {
    const { ground, token } = running(event("PENDING"));
    ground.accept(event("SUCCESS"));
    ground.accept(event("FAILED"));
    ground.slot(SUCCESS).replays = 3;
    const { next } = ground.finish(PENDING, token, { kind: "done" });
    expect(next).toEqual([
      { eventId: KEY + SUCCESS, replay: 3 },
      { eventId: KEY + FAILED, replay: 0 },
    ]);
    ground.slot(FAILED).told = true;
    const begun = ground.begin(SUCCESS, { replay: 3 });
    if (begun.kind !== "leased") throw new Error(begun.kind);
    expect(ground.finish(SUCCESS, begun.lease.token, { kind: "done" }).next).toEqual([]);
    expect(ground.record !== null && isFinished(ground.record)).toBe(false);
  });
});
