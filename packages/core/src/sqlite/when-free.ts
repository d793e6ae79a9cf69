import { type Clock, Stopwatch, sleep } from "../clock.ts";
import { isBusy } from "./failure.ts";

/** Longer than an attempt may take: attempts that follow one another without a pause would stop the event loop. */
const PAUSE_MS = 5;
/** As long as a timer can be; it is only there to be pending. */
const FOREVER_MS = 2_147_483_647;

/** Attempts it at once, and again for `limitMs` while another process holds the file. */
export async function whenFree<T>(clock: Clock, limitMs: number, attempt: () => T): Promise<T> {
  const waited = new Stopwatch(clock);
  let keptAlive: ReturnType<typeof setInterval> | undefined;
  try {
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error) || waited.elapsedMs > limitMs) throw error;
      }
      // A clock's timers do not keep a process alive: one that has nothing else to do would end here.
      keptAlive ??= setInterval(() => {}, FOREVER_MS);
      await sleep(clock, PAUSE_MS);
    }
  } finally {
    clearInterval(keptAlive);
  }
}
