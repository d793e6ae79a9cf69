import { emptyContext } from "./async-context.ts";

/** The time of a program. Tests use a fake one; see `fakeClock` of `@payhooks/core/testing`. */
export interface Clock {
  /** Milliseconds since the epoch: the wall clock, which may be set back or forward. */
  now(): number;
  /** Milliseconds since some moment. It is never set back or forward, though it may stand still while the machine sleeps. */
  monotonic(): number;
  /** Calls back once after `ms`. The returned function cancels this. Does not keep the process alive. */
  after(ms: number, callback: () => void): () => void;
}

/** Longest delay of a platform timer; longer ones fire at once, so they are waited for in parts. */
const MAX_TIMER_MS = 2_147_483_647;

/** The platform's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    if (ms > MAX_TIMER_MS) return afterLong(ms, callback);
    const timer = emptyContext.run(() => setTimeout(callback, Math.max(ms, 0)));
    // Node and Bun keep the process alive for a pending timer; other runtimes return a number.
    (timer as { unref?: () => void }).unref?.();
    return () => clearTimeout(timer);
  },
};

/** Calls back after more than a platform timer can wait. */
function afterLong(ms: number, callback: () => void): () => void {
  let cancel = systemClock.after(MAX_TIMER_MS, () => {
    cancel = systemClock.after(ms - MAX_TIMER_MS, callback);
  });
  return () => cancel();
}

/** Resolves after `ms` on the given clock, or as soon as the signal aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let cancel = (): void => {};
    const end = (): void => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    cancel = clock.after(ms, end);
    if (signal?.aborted === true) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}

/** Measures the time since it was made, on the one of the two clocks that shows more. */
export class Stopwatch {
  readonly #clock: Clock;
  readonly #wallStart: number;
  readonly #monotonicStart: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#wallStart = clock.now();
    this.#monotonicStart = clock.monotonic();
  }

  /**
   * In milliseconds. The wall clock includes the time that the machine slept, and the other clock is right even if the wall
   * clock was set back.
   */
  get elapsedMs(): number {
    return Math.max(this.#clock.now() - this.#wallStart, this.#clock.monotonic() - this.#monotonicStart);
  }
}
