import { Stopwatch, sleep } from "../clock.ts";
import type { Environment } from "../environment.ts";
import { isBusy } from "./failure.ts";

/** Longer than an attempt may take: attempts that follow one another without a pause would stop the event loop. */
const PAUSE_MS = 5;

/** Attempts it at once, and again for `limitMs` while another process holds the file. */
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
