import { Stopwatch, sleep } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import { isBusy } from "./failure.ts";

/** Longer than an attempt may take. Attempts without a pause in between would block the event loop. */
const PAUSE_MS = 5;

/** Calls `attempt` at once, and again for up to `limitMs` while another process has the file locked. */
export async function whenFree<T>(environment: Environment, limitMs: number, attempt: () => T): Promise<T> {
  const waited = new Stopwatch(environment);
  const letGo = environment.hold();
  try {
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error) || waited.elapsedMs > limitMs) throw error;
      }
      await sleep(environment, PAUSE_MS);
    }
  } finally {
    letGo();
  }
}
