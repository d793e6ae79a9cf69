import { describe, expect, it } from "vitest";
import { discard, replay } from "../../../src/inbox/record/decisions.ts";
import { isFinished } from "../../../src/inbox/record/record.ts";
import { DAY, event, FAILED, KEY, PENDING, RecordUnderTest, running, SUCCESS } from "./record-under-test.ts";

describe("a person's decision", () => {
  /** Held after its handlers, of which one was done. */
  function held(): RecordUnderTest {
    const tested = running();
    tested.endRun(SUCCESS, { kind: "held", reason: "rejected", detail: "no", onHeld: [] }, [
      { name: "first", kind: "done", attempt: 1 },
      { name: "second", kind: "given-up", attempt: 1, error: "no", reason: "rejected" },
    ]);
    return tested;
  }
  const decision = { by: "ops", note: "fixed" };

  it("to replay lets the event wait again, keeps the state of done handlers only, and is counted", () => {
    const tested = held();
    expect(replay(tested.record, KEY + SUCCESS, decision, 2_000)).toBe("decided");
    expect(tested.slot(SUCCESS)).toMatchObject({ state: "waiting", isOnHeldDone: false, replays: 1 });
    const { work } = tested.slot(SUCCESS);
    expect(Object.keys(work?.handlerStates ?? {})).toEqual(["first"]);
    expect(work).toMatchObject({ dueAt: 2_000, originalDelayMs: 0, onlyHandlers: null });
    expect(work?.history.at(-1)).toEqual({ at: 2_000, what: "replay 1", by: "ops", note: "fixed" });
    expect(replay(tested.record, KEY + SUCCESS, decision, 2_000)).toBe("unfinished");
  });

  it("to replay a held PENDING that was overtaken ends the PENDING", () => {
    const tested = running(event("PENDING"));
    tested.endRun(PENDING, { kind: "held", reason: "rejected", detail: null, onHeld: [] });
    tested.accept(event("SUCCESS"));
    expect(tested.slot(PENDING).state).toBe("held");
    expect(replay(tested.record, KEY + PENDING, decision, 2_000)).toBe("overtaken");
    expect(tested.slot(PENDING)).toMatchObject({ state: "stale", work: null });
  });

  it("to replay named handlers runs them again, although they were done", () => {
    const tested = held();
    replay(tested.record, KEY + SUCCESS, { ...decision, handlers: ["first"] }, 2_000);
    expect(tested.slot(SUCCESS).work?.handlerStates).toEqual({});
    expect(tested.slot(SUCCESS).work?.onlyHandlers).toEqual(["first"]);
    const begun = tested.begin(SUCCESS, { now: 2_000 });
    expect(begun).toMatchObject({ kind: "leased", input: { onlyHandlers: ["first"], mode: "run" } });
  });

  it("to replay takes the lease from the process that is calling onHeld handlers", () => {
    const tested = held();
    tested.slot(SUCCESS).isOnHeldDone = false;
    const begun = tested.begin(SUCCESS);
    if (begun.kind !== "leased") throw new Error(begun.kind);
    replay(tested.record, KEY + SUCCESS, decision, 2_000);
    expect(tested.endRun(SUCCESS, { kind: "stays-held" })).toEqual({ kind: "lost" });
  });

  it("to replay or discard is refused if the event is unknown or unfinished", () => {
    const tested = running();
    expect(replay(null, KEY + SUCCESS, decision, 2_000)).toBe("missing");
    expect(replay(tested.record, KEY + FAILED, decision, 2_000)).toBe("missing");
    expect(replay(tested.record, KEY + SUCCESS, decision, 2_000)).toBe("unfinished");
    expect(discard(null, KEY + SUCCESS, decision, 2_000)).toBe("missing");
    expect(discard(tested.record, KEY + FAILED, decision, 2_000)).toBe("missing");
    expect(discard(tested.record, KEY + SUCCESS, decision, 2_000)).toBe("unfinished");
    const waiting = new RecordUnderTest();
    waiting.accept(event("SUCCESS"));
    expect(replay(waiting.record, KEY + SUCCESS, decision, 2_000)).toBe("unfinished");
  });

  it("to discard keeps who made it and why, and copies stay duplicates", () => {
    const tested = held();
    tested.slot(SUCCESS).isOnHeldDone = false;
    tested.begin(SUCCESS);
    expect(discard(tested.record, KEY + SUCCESS, decision, 2_000)).toBe("decided");
    expect(tested.record).toMatchObject({ lease: null, expiresAt: 2_000 + DAY });
    expect(tested.slot(SUCCESS)).toMatchObject({ state: "discarded", work: null });
    expect(tested.accept(event("SUCCESS"))).toMatchObject({ outcome: "duplicate", reason: null });
    expect(tested.life(SUCCESS)).toMatchObject({
      state: "discarded",
      history: [
        { at: 1_000, what: "accepted" },
        { at: 1_000, what: "given up: rejected", handler: "second", attempt: 1, error: "no" },
        { at: 1_000, what: "held: rejected" },
        { at: 2_000, what: "discarded", by: "ops", note: "fixed" },
      ],
    });
  });

  it("about one slot does not end the lease of another slot", () => {
    const tested = running(event("SUCCESS"));
    tested.accept(event("FAILED"));
    discard(tested.record, KEY + FAILED, decision, 1_010);
    expect(tested.record?.lease?.slot).toBe(SUCCESS);
    const other = running(event("SUCCESS"));
    other.accept(event("FAILED"));
    replay(other.record, KEY + FAILED, decision, 1_010);
    expect(other.record?.lease?.slot).toBe(SUCCESS);
  });

  it("is made with the whole life of the event in view", () => {
    const tested = held();
    const steps = {
      first: { attempts: 1, state: "done", dueAt: 0, delayWhenWrittenMs: 0, error: null, reason: null },
      second: {
        attempts: 1,
        state: "given-up",
        dueAt: 0,
        delayWhenWrittenMs: 0,
        error: "no",
        reason: "rejected",
      },
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
      referenceId: "o-1",
      amount: "10",
      others: [],
      revision: expect.stringMatching(/^[0-9a-f]{16}$/),
      acceptedAt: 1_000,
      lastDeliveryAt: 1_000,
      copies: 0,
      replays: 0,
      handlers: steps,
      heldAt: 1_000,
      delivery: event("SUCCESS").delivery,
      erasedAt: null,
      history: [
        { at: 1_000, what: "accepted" },
        { at: 1_000, what: "given up: rejected", handler: "second", attempt: 1, error: "no" },
        { at: 1_000, what: "held: rejected" },
      ],
    };
    expect(tested.life(SUCCESS)).toEqual(life);
  });

  it("has no revision to name if nothing is held", () => {
    const tested = running();
    if (tested.record === null) throw new Error("no record");
    expect(tested.life(SUCCESS)).toMatchObject({ heldAt: null, revision: null });
    expect(isFinished(tested.record)).toBe(false);
    tested.endRun(SUCCESS, { kind: "done" });
    expect(tested.life(SUCCESS)).toMatchObject({
      state: "done",
      reason: null,
      detail: null,
      handlers: {},
      history: [],
    });
  });
});
