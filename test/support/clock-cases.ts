import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const DAY_MS = 86_400_000;

/** The cases of a clock of the platform, whose timers cannot wait for longer than 24.8 days. */
export function clockCases(
  name: string,
  clock: { after(ms: number, callback: () => void): () => void },
): void {
  describe(name, () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
    afterEach(() => void vi.useRealTimers());

    it("waits in full, for longer than a timer of the platform can", () => {
      const called = vi.fn();
      clock.after(60 * DAY_MS, called);
      vi.advanceTimersByTime(60 * DAY_MS - 1);
      expect(called).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(called).toHaveBeenCalledOnce();
      expect(vi.getTimerCount()).toBe(0);
    });

    it("never calls after a time without an end, nor after a cancellation in any part of the wait", () => {
      const called = vi.fn();
      const cancels = [Number.POSITIVE_INFINITY, 60 * DAY_MS].map((ms) => clock.after(ms, called));
      vi.advanceTimersByTime(59 * DAY_MS);
      for (const cancel of cancels) cancel();
      vi.advanceTimersByTime(30 * DAY_MS);
      expect(called).not.toHaveBeenCalled();
      expect(vi.getTimerCount()).toBe(0);
    });
  });
}
