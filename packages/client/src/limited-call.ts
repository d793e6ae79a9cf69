import type { Clock } from "./clock.ts";
import { ClientError } from "./errors.ts";

/** How long to wait for a call. */
export interface CallLimits {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** How long the call may still take after the signal has aborted. */
  readonly graceMs: number;
}

/**
 * Calls a function of the program, which may never settle. Rejects with `ERR_TIMEOUT` if it takes too long, and with the
 * signal's reason if it has not settled when the time after an abort is over.
 */
export function limitedCall<T>(
  name: string,
  call: () => T | Promise<T>,
  { clock, timeoutMs, signal, graceMs }: CallLimits,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let cancel = clock.after(timeoutMs, () => reject(timeoutError(name, timeoutMs)));
    const limitToGrace = (): void => {
      cancel();
      if (graceMs === 0) reject(signal.reason);
      else cancel = clock.after(graceMs, () => reject(signal.reason));
    };
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", limitToGrace);
    };
    if (signal.aborted) limitToGrace();
    else signal.addEventListener("abort", limitToGrace, { once: true });
    const called = (async () => call())();
    called.then(resolve, reject).finally(end);
  });
}

function timeoutError(name: string, timeoutMs: number): ClientError {
  return new ClientError("ERR_TIMEOUT", `${name} has not settled within ${timeoutMs / 60_000} minutes.`, {
    fix: "Give what it waits for a time limit.",
  });
}
