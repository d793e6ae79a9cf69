import { type Clock, systemClock } from "../../../packages/core/src/time/clock.ts";

/** A clock that shows real time at `since`, and from then on runs `speed` times as fast. It is the same in every process. */
export function fastClock({ speed, since }: { readonly speed: number; readonly since: number }): Clock {
  const { now, monotonic, after } = systemClock;
  return {
    now: () => since + (now() - since) * speed,
    monotonic: () => monotonic() * speed,
    after: (ms, callback) => after(ms / speed, callback),
  };
}
