import { describe, expect, it } from "vitest";
import { claimAtAcceptance } from "../../../src/inbox/record/accept-into-record.ts";
import {
  DAY,
  event,
  FAILED,
  KEY,
  lookedUp,
  OTHER,
  PENDING,
  RecordUnderTest,
  running,
  SUCCESS,
} from "./record-under-test.ts";

describe("accepting an event", () => {
  it("makes a record with one waiting slot, which has everything that a run needs", () => {
    const tested = new RecordUnderTest();
    const given = event("SUCCESS");
    expect(tested.accept(given)).toEqual({
      outcome: "new",
      eventId: KEY + SUCCESS,
      isBegun: false,
      overtaken: [],
      reason: null,
      detail: null,
      previousAmount: null,
    });
    expect(tested.record).toEqual({
      flow: "payments",
      tenant: "t",
      id: "tx-1",
      statusSlot: SUCCESS,
      isClosed: true,
      fixedFacts: { event: "DEPOSIT", referenceId: "o-1" },
      lease: null,
      signedAt: 500,
      expiresAt: 1_000 + DAY,
      slots: {
        [SUCCESS]: {
          name: "DEPOSIT",
          status: "SUCCESS",
          rank: 1,
          referenceId: null,
          amounts: { callback: "10" },
          verdict: "run",
          state: "waiting",
          isOnHeldDone: false,
          replays: 0,
          acceptedAt: 1_000,
          runToken: null,
          work: {
            delivery: given.delivery,
            retentionMs: DAY,
            reason: null,
            detail: null,
            heldAt: 0,
            dueAt: 1_000,
            originalDelayMs: 0,
            begunEarlyAt: null,
            handlerStates: {},
            onlyHandlers: null,
            evenIfExpired: false,
            previousStatus: null,
            previousAmount: null,
            history: [{ at: 1_000, what: "accepted" }],
          },
        },
      },
    });
  });

  it("counts the retention from the later of its signed time and now; a later copy may prolong it, and none shortens it", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS", { signedAt: 5_000 }));
    expect(tested.record).toMatchObject({ signedAt: 5_000, expiresAt: 5_000 + DAY });
    tested.now = 2_000;
    tested.accept(event("SUCCESS", { signedAt: 400 }));
    expect(tested.record).toMatchObject({ signedAt: 5_000, expiresAt: 5_000 + DAY });
    tested.now = 9_000;
    tested.accept(event("SUCCESS", { signedAt: 400, retentionMs: 10 }));
    expect(tested.record).toMatchObject({ signedAt: 5_000, expiresAt: 5_000 + DAY });
    tested.accept(event("SUCCESS", { signedAt: 5_001 }));
    expect(tested.record).toMatchObject({ signedAt: 5_001, expiresAt: 9_000 + DAY });
  });

  it("a second time is a duplicate, which leaves the slot as it is", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    const before = structuredClone(tested.slot(SUCCESS));
    expect(tested.accept(event("SUCCESS"))).toEqual({
      outcome: "duplicate",
      eventId: KEY + SUCCESS,
      reason: null,
      detail: null,
      previousAmount: null,
      isBegun: false,
      overtaken: [],
    });
    expect(tested.slot(SUCCESS)).toEqual(before);
  });

  it("with a delay makes it due after that delay", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"), { delayMs: 500 });
    expect(tested.slot(SUCCESS).work).toMatchObject({ dueAt: 1_500, originalDelayMs: 500 });
  });

  it("changes nothing if there is no room for a held event", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    const before = structuredClone(tested.record);
    const full = {
      admit: (outcome: string) => {
        if (outcome === "held") throw new Error("full");
      },
    };
    expect(() => tested.accept(event("FAILED"), full)).toThrow("full");
    expect(tested.record).toEqual(before);
    expect(tested.accept(event("SUCCESS"), full).outcome).toBe("duplicate");
  });

  it("claims the reference of a SUCCESS that runs or ran, and that was signed within the window", () => {
    const claiming = event("SUCCESS", { referenceKey: "r" });
    expect(claimAtAcceptance(null, claiming, 1_000)).toMatchObject({ key: "r", owner: KEY, until: null });
    expect(claimAtAcceptance(null, event("SUCCESS"), 1_000)).toBeNull();
    expect(claimAtAcceptance(null, { ...claiming, isWithinWindow: false }, 1_000)).toBeNull();
    const tested = running(claiming);
    expect(claimAtAcceptance(tested.record, claiming, 1_000)).toMatchObject({ key: "r", until: null });
    tested.endRun(SUCCESS, { kind: "done" });
    expect(claimAtAcceptance(tested.record, claiming, 1_000)).toMatchObject({
      key: "r",
      until: expect.any(Number),
    });
    const failed = new RecordUnderTest();
    failed.accept(event("FAILED"));
    expect(claimAtAcceptance(failed.record, claiming, 1_000)).toBeNull();
  });

  it("that was signed outside of the window leaves nothing, unless the event is recorded already", () => {
    const late = event("SUCCESS", { isWithinWindow: false });
    const tested = new RecordUnderTest();
    expect(tested.accept(late)).toEqual({
      outcome: "expired",
      eventId: KEY + SUCCESS,
      isBegun: false,
      overtaken: [],
      reason: null,
      detail: null,
      previousAmount: null,
    });
    expect(tested.record).toBeNull();
    tested.accept(event("SUCCESS"));
    expect(tested.accept(late).outcome).toBe("duplicate");
    expect(tested.accept(event("FAILED", { isWithinWindow: false })).outcome).toBe("expired");
    expect(Object.keys(tested.record?.slots ?? {})).toEqual([SUCCESS]);
  });

  it("after PENDING says which status and amount the PENDING had", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("PENDING", { amount: "9" }));
    expect(tested.record).toMatchObject({ statusSlot: PENDING, isClosed: false });
    const accepted = tested.accept(event("SUCCESS"));
    expect(accepted).toMatchObject({ outcome: "progress", previousAmount: "9" });
    expect(tested.slot(SUCCESS).work).toMatchObject({ previousStatus: "PENDING", previousAmount: "9" });
  });

  it.each([
    ["the same amount", "10", "10", null],
    ["no amount before", null, "10", null],
    ["no amount now", "9", null, null],
  ])("after PENDING names no previous amount, given %s", (_, before, now, previousAmount) => {
    const tested = new RecordUnderTest();
    tested.accept(event("PENDING", { amount: before }));
    expect(tested.accept(event("SUCCESS", { amount: now })).previousAmount).toBe(previousAmount);
    expect(tested.slot(SUCCESS).amounts).toEqual(now === null ? {} : { callback: now });
  });

  it("of a terminal status ends the waiting PENDING, and names it", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("PENDING"));
    expect(tested.accept(event("SUCCESS")).overtaken).toEqual([
      {
        flow: "payments",
        tenant: "t",
        eventId: KEY + PENDING,
        id: "tx-1",
        event: "DEPOSIT",
        status: "PENDING",
        referenceId: "o-1",
      },
    ]);
    expect(tested.slot(PENDING)).toMatchObject({ state: "stale", work: null });
    expect(tested.accept(event("PENDING")).outcome).toBe("duplicate");
  });

  it("of a PENDING after a terminal status is stale, and leaves nothing", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    const stale = { outcome: "stale", eventId: KEY + PENDING, reason: null, overtaken: [] };
    expect(tested.accept(event("PENDING"))).toMatchObject(stale);
    expect(tested.accept(event("PENDING", { isWithinWindow: false }))).toMatchObject(stale);
    expect(Object.keys(tested.record?.slots ?? {})).toEqual([SUCCESS]);
  });

  it("of a terminal status does not end a PENDING that runs", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("PENDING"));
    tested.begin(PENDING);
    expect(tested.accept(event("SUCCESS")).overtaken).toEqual([]);
    expect(tested.accept(event("PENDING")).outcome).toBe("duplicate");
    expect(tested.slot(PENDING).state).toBe("running");
  });
});

describe("an event is held when it is accepted", () => {
  const held = (outcome: string, reason: string, slot: string, detail: string | null = null) => ({
    outcome,
    eventId: KEY + slot,
    isBegun: false,
    overtaken: [],
    reason,
    detail,
    previousAmount: null,
  });

  it("as a conflict, if it is the other terminal status", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    const detail = "status differs from the final one that is recorded";
    expect(tested.accept(event("FAILED"))).toEqual(held("held", "conflict", FAILED, detail));
    expect(tested.record).toMatchObject({ statusSlot: SUCCESS });
    expect(tested.slot(FAILED)).toMatchObject({ state: "held", verdict: "conflict", isOnHeldDone: false });
    expect(tested.slot(FAILED).work).toMatchObject({
      reason: "conflict",
      detail,
      heldAt: 1_000,
      previousStatus: null,
      previousAmount: null,
      history: [{ at: 1_000, what: "held: conflict" }],
    });
    expect(tested.accept(event("FAILED"))).toEqual(held("duplicate", "conflict", FAILED, detail));
  });

  it.each([
    [
      "another reference",
      { fixedFacts: { event: "DEPOSIT", referenceId: "o-2" } },
      "referenceId differs from what is recorded",
    ],
    [
      "another event and reference",
      { fixedFacts: { event: "WITHDRAWAL", referenceId: "o-2" } },
      "event, referenceId differ from what is recorded",
    ],
    ["another amount", { amount: "11" }, "amount differs from the one that arrived the same way before"],
  ])(
    "as a mismatch, if it has %s under the same id: in a slot of its own, which says what differs",
    (_, changes, detail) => {
      const tested = new RecordUnderTest();
      tested.accept(event("SUCCESS"));
      expect(tested.accept(event("SUCCESS", changes))).toEqual(held("held", "mismatch", OTHER, detail));
      expect(tested.accept(event("SUCCESS", changes))).toEqual(held("duplicate", "mismatch", OTHER, detail));
      expect(tested.slot(OTHER).work?.detail).toBe(detail);
      expect(tested.record?.fixedFacts).toEqual({ event: "DEPOSIT", referenceId: "o-1" });
    },
  );

  it("as a mismatch, with the detail of the mismatch only, even if the rules found something else wrong", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    const changes = { amount: "11", verdict: "unexpected", detail: "of another merchant" } as const;
    expect(tested.accept(event("SUCCESS", changes)).reason).toBe("mismatch");
    expect(tested.slot(OTHER).work?.detail).toMatch(/^amount differs/);
  });

  it("unless it only lacks an amount or one of the fixed facts, or has a field more", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    expect(tested.accept(event("SUCCESS", { amount: null })).outcome).toBe("duplicate");
    expect(tested.accept(event("SUCCESS", { fixedFacts: { event: "DEPOSIT" } })).outcome).toBe("duplicate");
    const more = { event: "DEPOSIT", referenceId: "o-1", merchantId: "m" };
    expect(tested.accept(event("SUCCESS", { fixedFacts: more })).outcome).toBe("duplicate");
  });

  it("for what the rules found wrong, with their detail, and its status sets no rank", () => {
    const tested = new RecordUnderTest();
    const broken = event("SUCCESS", { verdict: "unexpected", detail: "of another merchant" });
    expect(tested.accept(broken)).toEqual(held("held", "unexpected", SUCCESS, "of another merchant"));
    expect(tested.record).toMatchObject({ statusSlot: null, isClosed: false, fixedFacts: {} });
    expect(tested.slot(SUCCESS).work?.detail).toBe("of another merchant");
    expect(tested.accept(event("FAILED"))).toMatchObject({ outcome: "new", reason: null });
  });

  it("as unrecognized, if the specification does not list it, in a slot of its own", () => {
    const tested = new RecordUnderTest();
    const unlisted = event("REVERSED", { rank: null, verdict: "unrecognized" });
    expect(tested.accept(unlisted)).toEqual(held("held", "unrecognized", OTHER));
    expect(tested.accept(unlisted)).toEqual(held("duplicate", "unrecognized", OTHER));
  });

  it("for what the rules found wrong, also after a PENDING", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("PENDING"));
    const broken = event("SUCCESS", { verdict: "unexpected" });
    expect(tested.accept(broken)).toEqual(held("held", "unexpected", SUCCESS));
    expect(tested.record).toMatchObject({ statusSlot: PENDING, isClosed: false });
  });

  it("as reference-reused, if another id has its reference; a reason of the rules goes before", () => {
    expect(new RecordUnderTest().accept(event("SUCCESS"), { isReferenceReused: true })).toMatchObject({
      reason: "reference-reused",
      detail: "another payTxnId has a SUCCESS for this reference",
    });
    const broken = event("SUCCESS", { verdict: "unexpected" });
    expect(new RecordUnderTest().accept(broken, { isReferenceReused: true })).toMatchObject({
      reason: "unexpected",
    });
  });
});

describe("amounts of a callback and of a look-up", () => {
  it("may differ: the second one is reported once as a change, and nothing is held", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    expect(tested.accept(lookedUp("SUCCESS", "9.5"))).toMatchObject({
      outcome: "duplicate",
      previousAmount: "10",
    });
    expect(tested.slot(SUCCESS).amounts).toEqual({ callback: "10", lookup: "9.5" });
    expect(tested.accept(lookedUp("SUCCESS", "9.5")).previousAmount).toBeNull();
    expect(tested.accept(lookedUp("SUCCESS", "9")).reason).toBe("mismatch");
  });

  it("change nothing if they are equal", () => {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    expect(tested.accept(lookedUp("SUCCESS", "10")).previousAmount).toBeNull();
    expect(tested.slot(SUCCESS).amounts).toEqual({ callback: "10", lookup: "10" });
  });

  it("are compared after a PENDING if only the look-up's amount of it is known", () => {
    const tested = new RecordUnderTest();
    tested.accept(lookedUp("PENDING", "9"));
    expect(tested.accept(event("SUCCESS"))).toMatchObject({ outcome: "progress", previousAmount: "9" });
  });
});
