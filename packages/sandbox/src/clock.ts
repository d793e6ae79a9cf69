/**
 * The sandbox's source of time. It has the shape of the clock in `@payhooks/core`, so core's fake clock works here too.
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once after `ms`. The returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** The longest duration that the sandbox takes, some 31 years. A time that is this far away can still be written. */
export const MAX_DURATION_MS = 1e12;

/** True for milliseconds that the sandbox can wait, or shift a time by. */
export function isDuration(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MAX_DURATION_MS;
}

/** The longest delay of a platform timer. A longer one would fire at once, so it is waited for in parts. */
export const MAX_TIMER_MS = 2_147_483_647;

/** The platform's clock. Its timers do not keep the process alive; the listening server does. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    if (ms > MAX_TIMER_MS) return afterLong(ms, callback);
    const timer = setTimeout(callback, Math.max(ms, 0));
    timer.unref();
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

/** A time as ISO 8601 in UTC with milliseconds, as the service writes `created_at`. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Makes timestamps in ISO 8601, UTC, with nanoseconds. Each is later than the last. */
export function nanosecondStamps(clock: Clock): () => string {
  let last = 0n;
  return () => {
    const nanoseconds = BigInt(Math.trunc(clock.now())) * 1_000_000n + (process.hrtime.bigint() % 1_000_000n);
    last = nanoseconds > last ? nanoseconds : last + 1n;
    return formatNanoseconds(last);
  };
}

/** Nanoseconds since the epoch as ISO 8601 in UTC, with nine fractional digits. */
function formatNanoseconds(ns: bigint): string {
  const seconds = new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(ns % 1_000_000_000n).padStart(9, "0")}Z`;
}
