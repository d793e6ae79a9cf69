import { fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { withTimeout } from "../../src/time/with-timeout.ts";

/** A clock that counts the timers that are set and not cancelled. */
function counting() {
  const clock = fakeClock();
  let set = 0;
  return {
    clock,
    after: (ms: number, callback: () => void) => {
      set++;
      const cancel = clock.after(ms, callback);
      return () => {
        set--;
        cancel();
      };
    },
    get set() {
      return set;
    },
  };
}

const late = (): Error => new Error("late");

describe("a call with a time limit", () => {
  it("answers what the call does, and leaves no timer", async () => {
    const timers = counting();
    expect(await withTimeout(timers, 100, async () => "answer", late)).toBe("answer");
    await expect(withTimeout(timers, 100, () => Promise.reject(new Error("no")), late)).rejects.toThrow("no");
    expect(timers.set).toBe(0);
  });

  it("leaves no timer behind a call that throws", async () => {
    const timers = counting();
    const throwing = (): Promise<never> => {
      throw new Error("a mistake");
    };
    await expect(withTimeout(timers, 100, throwing, late)).rejects.toThrow("a mistake");
    expect(timers.set).toBe(0);
  });

  it("is given up after its limit, and its later answer is ignored", async () => {
    const timers = counting();
    let fail = (_: Error): void => {};
    const asking = withTimeout(timers, 100, () => new Promise((_, reject) => (fail = reject)), late);
    const outcome = asking.catch((error: unknown) => error);
    await timers.clock.advance(100);
    expect(await outcome).toEqual(new Error("late"));
    fail(new Error("much later"));
    await timers.clock.advance(1);
  });
});
