import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/time/clock.ts";

const DAY_MS = 86_400_000;

describe("the platform's clock", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  it("waits in full, for longer than a timer of the platform can", () => {
    const called = vi.fn();
    systemClock.after(60 * DAY_MS, called);
    vi.advanceTimersByTime(60 * DAY_MS - 1);
    expect(called).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(called).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("calls never after a time without an end, and not after a cancellation in any part of the wait", () => {
    const called = vi.fn();
    const cancels = [Number.POSITIVE_INFINITY, 60 * DAY_MS].map((ms) => systemClock.after(ms, called));
    vi.advanceTimersByTime(59 * DAY_MS);
    for (const cancel of cancels) cancel();
    vi.advanceTimersByTime(30 * DAY_MS);
    expect(called).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});
