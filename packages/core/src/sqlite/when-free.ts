import { Stopwatch, sleep } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import { isBusy } from "./failure.ts";

/**
 * The pause between attempts, which is longer than an attempt takes. Without a pause, the attempts would block the event loop.
 */
const LOCKED_PAUSE_MS = 5;

/** Calls `attempt` at once, and repeats it for up to `limitMs` while another process has the file locked. */
export async function whenFree<T>(environment: Environment, limitMs: number, attempt: () => T): Promise<T> {
  const waited = new Stopwatch(environment);
  const stopKeepingAlive = environment.keepAlive();
  try {
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error) || waited.elapsedMs > limitMs) throw error;
      }
      await sleep(environment, LOCKED_PAUSE_MS);
    }
  } finally {
    stopKeepingAlive();
  }
}
