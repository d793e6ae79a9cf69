import { type Environment, environmentOf } from "../time/environment.ts";

/** A clock that moves only when `advance` is called. */
export interface FakeClock extends Environment {
  /**
   * Moves the clock forward, and fires timers in the order in which they fall due. After each timer, it waits until everything
   * that the timer started has come to rest.
   */
  advance(duration: Duration): Promise<void>;
}

/** Milliseconds, or a number with a unit: `"500ms"`, `"30s"`, `"5m"`, `"1h"`, `"7d"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A duration in milliseconds. */
function toMs(duration: Duration): number {
  const [, digits = "", unit = ""] = /^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)$/.exec(String(duration)) ?? [];
  const ms = typeof duration === "number" ? duration : Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (Number.isFinite(ms) && ms >= 0) return ms;
  throw new TypeError(
    `Not a duration: ${JSON.stringify(duration)}. Write milliseconds, "30s", "5m", "1h" or "2d".`,
  );
}

/** Waits until promises and immediates that are under way have settled. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * A fake clock for tests.
 *
 * @param start milliseconds since the epoch; default: the time of the call, because deliveries are signed with it.
 */
export function fakeClock(start: number = Date.now()): FakeClock {
  return steppedClock(start, settle);
}

/** A clock that stands still after each step until `rest` has resolved. */
export function steppedClock(start: number, waitForRest: () => Promise<void>): FakeClock {
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>();
  let now = start;
  const { nextTurn, keepAlive, token } = environmentOf();
  return {
    nextTurn,
    keepAlive,
    token,
    now: () => now,
    monotonic: () => now,
    after(ms, callback) {
      const timer = { at: now + Math.max(0, ms), callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(duration) {
      const endsAt = now + toMs(duration);
      await waitForRest();
      for (;;) {
        const [nextTimer] = [...timers].filter(({ at }) => at <= endsAt).sort((a, b) => a.at - b.at);
        if (nextTimer === undefined) break;
        timers.delete(nextTimer);
        now = Math.max(now, nextTimer.at);
        nextTimer.callback();
        await waitForRest();
      }
      now = Math.max(now, endsAt);
    },
  };
}
