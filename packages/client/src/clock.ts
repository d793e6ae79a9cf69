import type { Clock as FullClock } from "@payhooks/core";

/** The part of a clock that the client needs. The clock of a receiver can be used too. */
export type Clock = Pick<FullClock, "now" | "after">;

/** The platform's clock. Its timers keep the process alive, unlike a receiver's: a script waits for its retries. */
export const systemClock: Clock = { now: () => Date.now(), after: (ms, call) => after(ms, call, true) };

/** The platform's clock, whose timers do not keep the process alive. */
export const quietClock: Clock = { now: () => Date.now(), after: (ms, call) => after(ms, call, false) };

/** The longest delay of a platform timer. A longer one would fire at once, so it is waited for in parts. */
const MAX_TIMER_MS = 2_147_483_647;

function after(ms: number, callback: () => void, keepsAlive: boolean): () => void {
  if (ms > MAX_TIMER_MS) {
    let cancel = after(
      MAX_TIMER_MS,
      () => {
        cancel = after(ms - MAX_TIMER_MS, callback, keepsAlive);
      },
      keepsAlive,
    );
    return () => cancel();
  }
  const timer = setTimeout(callback, ms);
  // Only timers of Node and Bun keep the process alive; other runtimes return a number.
  if (!keepsAlive) (timer as { unref?: () => void }).unref?.();
  return () => clearTimeout(timer);
}

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
