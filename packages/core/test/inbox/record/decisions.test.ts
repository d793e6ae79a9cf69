import { describe, expect, it } from "vitest";
import { discard, replay } from "../../../src/inbox/record/decisions.ts";
import { isFinished } from "../../../src/inbox/record/record.ts";
import { DAY, event, FAILED, Ground, KEY, PENDING, running, SUCCESS } from "./ground.ts";

describe("a person's decision", () => {
  /** Held after its handlers, of which one was done. */
  function held(): Ground {
    const ground = running();
    ground.finish(SUCCESS, { kind: "held", reason: "rejected", detail: "no", tell: [] }, [
      { name: "first", kind: "done", attempt: 1 },
      { name: "second", kind: "given-up", attempt: 1, error: "no", reason: "rejected" },
    ]);
    return ground;
  }
  const decision = { by: "ops", note: "fixed" };

  it("to replay makes it wait again, without the steps that were not done, and counts", () => {
    const ground = held();
    expect(replay(ground.record, KEY + SUCCESS, decision, 2_000)).toBe("decided");
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "waiting", told: false, replays: 1 });
    const { work } = ground.slot(SUCCESS);
    expect(Object.keys(work?.steps ?? {})).toEqual(["first"]);
    expect(work).toMatchObject({ dueAt: 2_000, dueInMs: 0, only: null });
    expect(work?.history.at(-1)).toEqual({ at: 2_000, what: "replay 1", by: "ops", note: "fixed" });
    expect(replay(ground.record, KEY + SUCCESS, decision, 2_000)).toBe("unfinished");
  });

  it("to replay a PENDING that was overtaken meanwhile ends it", () => {
    const ground = running(event("PENDING"));
    ground.finish(PENDING, { kind: "held", reason: "rejected", detail: null, tell: [] });
    ground.accept(event("SUCCESS"));
    expect(ground.slot(PENDING).state).toBe("held");
    expect(replay(ground.record, KEY + PENDING, decision, 2_000)).toBe("overtaken");
    expect(ground.slot(PENDING)).toMatchObject({ state: "stale", work: null });
  });

  it("to replay some handlers forgets that those were done", () => {
    const ground = held();
    replay(ground.record, KEY + SUCCESS, { ...decision, handlers: ["first"] }, 2_000);
    expect(ground.slot(SUCCESS).work?.steps).toEqual({});
    expect(ground.slot(SUCCESS).work?.only).toEqual(["first"]);
    const begun = ground.begin(SUCCESS, { now: 2_000 });
    expect(begun).toMatchObject({ kind: "leased", lease: { only: ["first"], mode: "run" } });
  });

  it("to replay takes the lease from whoever is being told", () => {
    const ground = held();
    ground.slot(SUCCESS).told = false;
    const begun = ground.begin(SUCCESS);
    if (begun.kind !== "leased") throw new Error(begun.kind);
    replay(ground.record, KEY + SUCCESS, decision, 2_000);
    expect(ground.finish(SUCCESS, { kind: "told" })).toEqual({ kind: "lost" });
  });

  it("to replay or discard is refused where nothing is held", () => {
    const ground = running();
    expect(replay(null, KEY + SUCCESS, decision, 2_000)).toBe("missing");
    expect(replay(ground.record, KEY + FAILED, decision, 2_000)).toBe("missing");
    expect(replay(ground.record, KEY + SUCCESS, decision, 2_000)).toBe("unfinished");
    expect(discard(null, KEY + SUCCESS, decision, 2_000)).toBe("missing");
    expect(discard(ground.record, KEY + FAILED, decision, 2_000)).toBe("missing");
    expect(discard(ground.record, KEY + SUCCESS, decision, 2_000)).toBe("unfinished");
    const waiting = new Ground();
    waiting.accept(event("SUCCESS"));
    expect(replay(waiting.record, KEY + SUCCESS, decision, 2_000)).toBe("unfinished");
  });

  it("to discard leaves copies duplicates, and remembers who and why", () => {
    const ground = held();
    ground.slot(SUCCESS).told = false;
    ground.begin(SUCCESS);
    expect(discard(ground.record, KEY + SUCCESS, decision, 2_000)).toBe("decided");
    expect(ground.record).toMatchObject({ lease: null, expiresAt: 2_000 + DAY });
    expect(ground.slot(SUCCESS)).toMatchObject({ state: "discarded", work: null });
    expect(ground.accept(event("SUCCESS"))).toMatchObject({ outcome: "duplicate", reason: null });
    expect(ground.life(SUCCESS)).toMatchObject({
      state: "discarded",
      history: [
        { at: 1_000, what: "accepted" },
        { at: 1_000, what: "given up: rejected", handler: "second", attempt: 1, error: "no" },
        { at: 1_000, what: "held: rejected" },
        { at: 2_000, what: "discarded", by: "ops", note: "fixed" },
      ],
    });
  });

  it("about one slot leaves the lease of another alone", () => {
    const ground = running(event("SUCCESS"));
    ground.accept(event("FAILED"));
    discard(ground.record, KEY + FAILED, decision, 1_010);
    expect(ground.record?.lease?.slot).toBe(SUCCESS);
    const other = running(event("SUCCESS"));
    other.accept(event("FAILED"));
    replay(other.record, KEY + FAILED, decision, 1_010);
    expect(other.record?.lease?.slot).toBe(SUCCESS);
  });

  it("can be made on its whole life", () => {
    const ground = held();
    const steps = {
      first: { attempts: 1, state: "done", dueAt: 0, dueInMs: 0, error: null, reason: null },
      second: { attempts: 1, state: "given-up", dueAt: 0, dueInMs: 0, error: "no", reason: "rejected" },
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
    expect(ground.life(SUCCESS)).toEqual(life);
  });

  it("is not asked for where nothing is held", () => {
    const ground = running();
    if (ground.record === null) throw new Error("no record");
    expect(ground.life(SUCCESS)).toMatchObject({ heldAt: null, revision: null });
    expect(isFinished(ground.record)).toBe(false);
    ground.finish(SUCCESS, { kind: "done" });
    expect(ground.life(SUCCESS)).toMatchObject({
      state: "done",
      reason: null,
      detail: null,
      handlers: {},
      history: [],
    });
  });
});
