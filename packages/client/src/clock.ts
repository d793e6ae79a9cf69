import type { Clock as FullClock } from "@payhooks/core";

/** The part of a clock that the client needs. The clock of a receiver can be used too. */
export type Clock = Pick<FullClock, "now" | "after">;

/** The platform's clock. Its timers keep the process alive, unlike a receiver's: a script waits for its retries. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or as soon as the signal aborts. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    if (signal?.aborted === true) end();
    signal?.addEventListener("abort", end, { once: true });
  });
}
