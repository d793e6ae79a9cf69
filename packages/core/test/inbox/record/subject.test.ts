import { describe, expect, it } from "vitest";
import type { IdempotencyRecord } from "../../../src/inbox/record/record.ts";
import {
  releaseSubject,
  renewSubject,
  type SubjectRequest,
  takeSubject,
} from "../../../src/inbox/record/subject.ts";

const request: SubjectRequest = {
  flow: "connect",
  tenant: "",
  eventId: `${"a".repeat(32)}${"1".repeat(16)}`,
  at: 1_000,
  token: "first",
  begunAt: 5_000,
  leaseMs: 600,
  retentionMs: 60_000,
  isReplay: false,
  mayBeForgotten: false,
};
const later: SubjectRequest = { ...request, token: "second", begunAt: 5_700 };

/** The record of the subject after a run has taken it. */
function taken(stored: IdempotencyRecord | null, by: SubjectRequest, now: number): IdempotencyRecord {
  const { answer, record } = takeSubject(structuredClone(stored), by, now);
  expect(answer).toBe("acquired");
  if (record === null) throw new Error("nothing was written");
  return record;
}

describe("the subject of an event whose first run stood still until its lease had lapsed", () => {
  const afterFirst = taken(null, request, 5_000);
  const afterSecond = taken(afterFirst, later, 5_700);

  it("goes to the second run at once, although the first one's lease on it still lasts", () => {
    expect(takeSubject(structuredClone(afterFirst), later, 5_100).answer).toBe("acquired");
  });

  it("is not taken back by the first run while the second one has it", () => {
    expect(takeSubject(structuredClone(afterSecond), request, 5_800)).toMatchObject({
      answer: "busy",
      record: null,
    });
    expect(renewSubject(structuredClone(afterSecond), "second", 600, 5_800)).toBe(true);
  });

  it("is the second run's own if it asks again", () => {
    expect(takeSubject(structuredClone(afterSecond), later, 5_800)).toMatchObject({
      answer: "acquired",
      record: null,
    });
  });

  it("is busy for another event until the second run has released it", () => {
    const other = { ...request, eventId: `${"b".repeat(32)}${"1".repeat(16)}`, at: 2_000, token: "other" };
    expect(takeSubject(structuredClone(afterSecond), other, 5_800).answer).toBe("busy");
    const released = structuredClone(afterSecond);
    expect(releaseSubject(released, "second", [later.eventId], 60_000, 5_900)).toBe(true);
    expect(takeSubject(released, other, 5_900).answer).toBe("acquired");
  });
});
