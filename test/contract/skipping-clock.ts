import { type FakeClock, fakeClock } from "@payhooks/core/testing";

/** How much of a long time is played, at its end. */
const PLAYED_MS = 600_000;

/**
 * A fake clock on which long times are slept through, as by a machine that is suspended: no timer fires before the last ten
 * minutes. A store on disk would otherwise look for losses, and delete what has expired, thousands of times a day.
 */
export function skippingClock(): Pick<FakeClock, "advance"> & { readonly clock: Omit<FakeClock, "advance"> } {
  const played = fakeClock();
  let sleptMs = 0;
  return {
    clock: {
      ...played,
      now: () => played.now() + sleptMs,
      monotonic: () => played.monotonic() + sleptMs,
    },
    async advance(duration) {
      const ms = Number(duration);
      await played.advance(0);
      if (ms > PLAYED_MS) sleptMs += ms - PLAYED_MS;
      await played.advance(Math.min(ms, PLAYED_MS));
    },
  };
}
