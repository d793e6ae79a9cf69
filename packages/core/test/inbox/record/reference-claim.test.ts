import { describe, expect, it } from "vitest";
import type { IdempotencyRecord } from "../../../src/inbox/record/record.ts";
import {
  type ClaimContext,
  type ClaimResult,
  claimAtRun,
  claimReference,
  claimsToProlong,
  closeClaim,
  finishedClaimsOf,
  type ReferenceClaim,
} from "../../../src/inbox/record/reference-claim.ts";
import { DAY, event, FAILED, KEY, type RecordUnderTest, running, SUCCESS } from "./record-under-test.ts";

const NOW = 1_000;
const claiming = event("SUCCESS", { referenceKey: "r" });
const OPENING = claimAtRun(claiming) as ReferenceClaim;

function ask(
  stored: IdempotencyRecord | null,
  claim: Partial<ReferenceClaim> = {},
  context: Partial<ClaimContext> = {},
): ClaimResult {
  return claimReference(
    stored,
    { ...OPENING, ...claim },
    { now: NOW, token: "new", forgottenOwner: null, ...context },
  );
}

/** A claim that KEY has opened with this token. */
function opened(token: string): IdempotencyRecord {
  return ask(null, {}, { token }).record as IdempotencyRecord;
}

describe("a claim of a reference", () => {
  it("is open and has a token, which its owner is given again without a write", () => {
    expect(opened("t1")).toMatchObject({ id: KEY, isClosed: false, slots: {}, expiresAt: NOW + DAY });
    expect(ask(opened("t1"))).toEqual({ owner: KEY, token: "t1", isOld: false, record: null });
  });

  it("belongs to its owner: others are told who that is, and whether the claim is old", () => {
    const theirs = { ...opened("t1"), id: "b".repeat(32) };
    expect(ask(theirs)).toMatchObject({ owner: theirs.id, isOld: false, record: null });
    const later = { now: NOW + DAY };
    expect(ask(theirs, {}, later)).toMatchObject({ owner: theirs.id, isOld: true, record: null });
    expect(ask(theirs, {}, { ...later, forgottenOwner: theirs.id })).toMatchObject({
      owner: KEY,
      token: "new",
    });
    // It was asked for again since, so it is not old any more.
    const again = { ...theirs, expiresAt: NOW + 2 * DAY };
    expect(ask(again, {}, { ...later, forgottenOwner: theirs.id })).toMatchObject({ owner: theirs.id });
  });

  it("is written again by its owner if it is old, since another transaction may be taking it over", () => {
    const again = ask(opened("t1"), {}, { now: NOW + DAY });
    expect(again).toMatchObject({ token: "new", record: { isClosed: false, expiresAt: NOW + 2 * DAY } });
  });

  it("expires with its owner, and not before its own retention has passed", () => {
    expect(closeClaim(opened("t1"), "t1", NOW + 2 * DAY)).toMatchObject({
      isClosed: true,
      expiresAt: NOW + 2 * DAY,
    });
    expect(closeClaim(opened("t1"), "t1", NOW)).toMatchObject({ isClosed: true, expiresAt: NOW + DAY });
  });

  it("stays open if it was opened again since the owner was finished", () => {
    const spentToken = "t1";
    const again = ask(opened("t1"), { spentToken }).record;
    expect(again).toMatchObject({ isClosed: false, fixedFacts: { token: "new" } });
    expect(closeClaim(again, spentToken, NOW + DAY)).toBeNull();
    // It does not matter which of the two writes comes first.
    const closed = closeClaim(opened("t1"), "t1", NOW + DAY);
    expect(ask(closed, { spentToken }).record).toMatchObject({
      isClosed: false,
      fixedFacts: { token: "new" },
    });
  });

  it("is prolonged with its owner, whether it is open or not, and never shortened", () => {
    const until = NOW + 3 * DAY;
    const closed = closeClaim(opened("t1"), "t1", NOW + DAY) as IdempotencyRecord;
    expect(ask(closed, { until }).record).toMatchObject({ isClosed: true, expiresAt: until });
    expect(ask(opened("t1"), { until }).record).toMatchObject({ isClosed: false, expiresAt: until });
    expect(ask(closed, { until: NOW })).toMatchObject({ token: "t1", record: null });
    expect(ask(null, { until }).record).toMatchObject({ isClosed: true, expiresAt: until });
  });
});

describe("the claims of a record", () => {
  /** A SUCCESS that is done, whose reference was claimed. */
  function done(): RecordUnderTest {
    const tested = running(claiming);
    if (tested.record !== null) tested.record.claims = { r: "t1" };
    expect(tested.endRun(SUCCESS, { kind: "done" })).toMatchObject({
      claimsToClose: { claims: { r: "t1" }, expiresAt: NOW + DAY },
    });
    return tested;
  }

  it("may expire once everything in the record is finished", () => {
    const tested = running(claiming);
    if (tested.record !== null) tested.record.claims = { r: "t1" };
    tested.accept(event("FAILED"));
    expect(tested.endRun(SUCCESS, { kind: "done" })).toMatchObject({ kind: "ended", claimsToClose: null });
    expect(tested.slot(FAILED)).toMatchObject({ state: "held" });
  });

  it("are prolonged before a finished record is: without an end if the record is to have a held event, else with the record", () => {
    const tested = done();
    const before = finishedClaimsOf(tested.record as IdempotencyRecord);
    const prolong = (): readonly ReferenceClaim[] =>
      claimsToProlong(before, tested.record as IdempotencyRecord, event("FAILED"));
    expect(prolong()).toEqual([]);
    tested.accept(event("PENDING", { signedAt: NOW + DAY }));
    const [longer] = prolong();
    expect(longer).toMatchObject({ key: "r", owner: KEY, spentToken: "t1" });
    expect(longer?.until).toBeGreaterThanOrEqual(tested.record?.expiresAt ?? Number.POSITIVE_INFINITY);
    tested.accept(event("FAILED"));
    expect(prolong()).toMatchObject([{ key: "r", until: null, spentToken: "t1" }]);
    expect(claimsToProlong(null, tested.record as IdempotencyRecord, event("FAILED"))).toEqual([]);
  });
});
