import { Stopwatch, sleep } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import { isBusy } from "./failure.ts";

/**
 * The pause between attempts, which is longer than an attempt takes. Without a pause, the attempts would block the event loop.
 */
const LOCK_RETRY_PAUSE_MS = 5;

/** Calls `attempt` at once, and repeats it for up to `limitMs` while another process has the file locked. */
export async function retryWhileLocked<T>(
  environment: Environment,
  limitMs: number,
  attempt: () => T,
): Promise<T> {
  const stopwatch = new Stopwatch(environment);
  const stopKeepingAlive = environment.keepAlive();
  try {
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error) || stopwatch.elapsedMs > limitMs) throw error;
      }
      await sleep(environment, LOCK_RETRY_PAUSE_MS);
    }
  } finally {
    stopKeepingAlive();
  }
}
