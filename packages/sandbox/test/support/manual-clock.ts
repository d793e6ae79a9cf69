import type { Clock, Sandbox } from "../../src/index.ts";

/** A clock that moves only when a test moves it. */
export interface ManualClock extends Clock {
  /** Milliseconds from now of everything that waits, in order. */
  waiting(): number[];
  /** Moves on; after each thing that falls due, what it started on the sandbox is let come to rest. */
  advance(ms: number, sandbox?: Sandbox): Promise<void>;
}

export function manualClock(start: number = Date.parse("2026-03-01T12:00:00.000Z")): ManualClock {
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>();
  let now = start;
  const due = () => [...timers].sort((a, b) => a.at - b.at);
  return {
    now: () => now,
    after(ms, callback) {
      const timer = { at: now + ms, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    waiting: () => due().map(({ at }) => at - now),
    async advance(ms, sandbox) {
      const end = now + ms;
      for (;;) {
        const [next] = due();
        if (next === undefined || next.at > end) break;
        timers.delete(next);
        now = next.at;
        next.callback();
        await sandbox?.deliveries.idle();
      }
      now = end;
    },
  };
}
