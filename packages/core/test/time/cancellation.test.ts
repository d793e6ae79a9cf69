import { describe, expect, it } from "vitest";
import { Cancellation } from "../../src/time/cancellation.ts";

describe("a cancellation", () => {
  it("aborts a signal that was asked for before, with its reason", () => {
    const cancellation = new Cancellation();
    const { signal } = cancellation;
    expect([cancellation.isCancelled, signal.aborted]).toEqual([false, false]);
    const reason = new Error("lease lost");
    cancellation.cancel(reason);
    expect(cancellation.isCancelled).toBe(true);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBe(reason);
  });

  it("shows a signal that is aborted already when it is asked for after", () => {
    const cancellation = new Cancellation();
    const reason = new Error("time is up");
    cancellation.cancel(reason);
    expect(cancellation.signal.aborted).toBe(true);
    expect(cancellation.signal.reason).toBe(reason);
    expect(cancellation.signal).toBe(cancellation.signal);
  });

  it("keeps its first reason", () => {
    const cancellation = new Cancellation();
    cancellation.cancel("first");
    cancellation.cancel("second");
    expect(cancellation.signal.reason).toBe("first");
  });

  it("cancels also those that were derived from it, before or after, and not the reverse", () => {
    const whole = new Cancellation();
    const [one, other] = [whole.derive(), whole.derive()];
    one.cancel("one");
    expect([whole.isCancelled, one.isCancelled, other.isCancelled]).toEqual([false, true, false]);
    whole.cancel("all");
    expect(other.signal.reason).toBe("all");
    expect(one.signal.reason).toBe("one");
    expect(whole.derive().signal.reason).toBe("all");
  });

  it("reaches a listener of one that was derived twice, and keeps the reason that came first", () => {
    const whole = new Cancellation();
    const middle = whole.derive();
    const [listened, unheard] = [middle.derive(), middle.derive()];
    const { signal } = listened;
    whole.cancel("all");
    expect([signal.aborted, signal.reason]).toEqual([true, "all"]);
    unheard.cancel("late");
    expect([unheard.isCancelled, unheard.signal.reason]).toEqual([true, "all"]);
  });
});
