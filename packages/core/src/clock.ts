/** The only source of time. Tests give a fake one; see `fakeClock` of `@payhooks/core/testing`. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once after `ms`; the returned function cancels. Does not keep the process alive. */
  after(ms: number, callback: () => void): () => void;
}

/** Longest delay of a platform timer; longer ones fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** The platform's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), MAX_TIMER_MS));
    // Node and Bun keep the process alive for a pending timer; other runtimes return a number.
    (timer as { unref?: () => void }).unref?.();
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms` on the given clock. */
export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}
