import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeRecord, encodeRecord, isUnreadable } from "../../../src/inbox/record/codec.ts";
import { MAX_CONTRADICTIONS } from "../../../src/inbox/record/contradictions.ts";
import { discard, replay } from "../../../src/inbox/record/decisions.ts";
import type { VerifiedEvent } from "../../../src/inbox/record/event.ts";
import { event, KEY, RecordUnderTest, SUCCESS } from "./record-under-test.ts";

/** A callback that contradicts the others by its reference. */
function contradicting(n: number, filling = ""): VerifiedEvent {
  const fixedFacts = { event: "DEPOSIT", referenceId: `other-${n}${filling}` };
  const given = event("SUCCESS", { fixedFacts, variantSlot: () => n.toString(16).padStart(16, "0") });
  return { ...given, delivery: { ...given.delivery, content: Buffer.from(JSON.stringify(fixedFacts)) } };
}

const slotOf = (n: number): string => n.toString(16).padStart(16, "0");

describe("contradictions of one record", () => {
  /** A SUCCESS with as many contradictions as are kept. */
  function full(): RecordUnderTest {
    const tested = new RecordUnderTest();
    tested.accept(event("SUCCESS"));
    for (let n = 1; n <= MAX_CONTRADICTIONS; n++) {
      tested.now++;
      expect(tested.accept(contradicting(n))).toMatchObject({ outcome: "held", eventId: KEY + slotOf(n) });
    }
    return tested;
  }

  it("are kept up to eight; further ones are answered in the same way, and counted in the history of the eighth", () => {
    const tested = full();
    for (let n = 100; n < 340; n++) {
      tested.now += 500;
      expect(tested.accept(contradicting(n))).toMatchObject({
        outcome: "held",
        eventId: KEY + slotOf(MAX_CONTRADICTIONS),
        reason: "mismatch",
        detail: "referenceId differs from what is recorded",
      });
    }
    expect(Object.keys(tested.record?.slots ?? {})).toHaveLength(MAX_CONTRADICTIONS + 1);
    const { history } = tested.life(slotOf(MAX_CONTRADICTIONS));
    // Those within a second count as one.
    expect(history.map(({ what }) => what)).toEqual(["held: mismatch", "and more: 120"]);
  });

  it("that are only counted take no room for held events", () => {
    const tested = full();
    const admit = (): void => {
      throw new Error("no room");
    };
    expect(tested.accept(contradicting(100), { admit }).outcome).toBe("held");
    expect(() => tested.accept(event("FAILED"), { admit })).not.toThrow();
  });

  it("make room, the oldest first, once they are decided about; copies of the others are duplicates", () => {
    const tested = full();
    const by = { by: "an operator", note: "spam" };
    expect(discard(tested.record, KEY + slotOf(3), by, tested.now)).toBe("decided");
    expect(tested.accept(contradicting(3)).outcome).toBe("duplicate");
    expect(tested.accept(contradicting(100))).toMatchObject({ outcome: "held", eventId: KEY + slotOf(100) });
    expect(tested.record?.slots).not.toHaveProperty(slotOf(3));
    expect(tested.accept(contradicting(4)).outcome).toBe("duplicate");
    expect(tested.accept(event("SUCCESS")).outcome).toBe("duplicate");
  });
});

describe("the size of a record", () => {
  const BODY_BYTES = 2_000;
  /** Its events, each with a body and a history whose texts are cut. Nothing in it depends on how often something happens. */
  const GREATEST = (MAX_CONTRADICTIONS + 2) * (4 * BODY_BYTES + 50 * 1_600 + 10_000);

  it("has a bound, whatever happens to one record, however often", () => {
    const long = "x".repeat(5_000);
    const filling = "y".repeat(BODY_BYTES);
    const by = { by: long, note: long };
    const act = fc.tuple(
      fc.constantFrom("contradict", "copy", "pending", "failed", "run", "replay", "discard", "die"),
      fc.nat(40),
      fc.constantFrom(0, 10, 2_000),
    );
    let greatest = 0;
    fc.assert(
      fc.property(fc.array(act, { minLength: 200, maxLength: 400 }), (acts) => {
        const tested = new RecordUnderTest();
        tested.accept(event("SUCCESS"));
        for (const [what, n, later] of acts) {
          tested.now += later;
          const eventId = KEY + slotOf(n);
          if (what === "contradict") tested.accept(contradicting(n, filling));
          else if (what === "copy") tested.accept(event("SUCCESS"));
          else if (what === "pending") tested.accept(event("PENDING"));
          else if (what === "failed") tested.accept(event("FAILED", { variantSlot: () => slotOf(n) }));
          else if (what === "replay") replay(tested.record, eventId, by, tested.now);
          else if (what === "discard") discard(tested.record, eventId, by, tested.now);
          else {
            const input = tested.next();
            if (input === null || what === "die") continue;
            const attempt = (input.handlerStates.main?.attempts ?? 0) + 1;
            const failed = { name: "main", attempt, error: long };
            if (n % 3 === 0) tested.endRun(input.slot, { kind: "done" });
            else if (n % 3 === 1)
              tested.endRun(input.slot, { kind: "retry", delayMs: 10 }, [
                { ...failed, kind: "failed", delayMs: 10 },
              ]);
            else
              tested.endRun(input.slot, { kind: "held", reason: "exhausted", detail: long, onHeld: [] }, [
                { ...failed, kind: "given-up", reason: "exhausted" },
              ]);
          }
        }
        if (tested.record === null) throw new Error("no record");
        const text = encodeRecord(tested.record);
        greatest = Math.max(greatest, text.length);
        expect(text.length).toBeLessThan(GREATEST);
        expect(isUnreadable(decodeRecord(text))).toBe(false);
        expect(tested.record.slots).toHaveProperty(SUCCESS);
      }),
      { numRuns: 60 },
    );
    // The attack does reach the contradictions, or it would show nothing.
    expect(greatest).toBeGreaterThan(MAX_CONTRADICTIONS * BODY_BYTES);
  });
});
