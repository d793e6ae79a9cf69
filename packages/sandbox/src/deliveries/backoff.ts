import { draw } from "../draw.ts";

/** When and how often a failed delivery is sent again. */
export interface RetryOptions {
  /** How many attempts there are, including the first. Default: 10. */
  readonly maxAttempts?: number | undefined;
  /** The wait after the first failure. Default: 1 s. */
  readonly baseMs?: number | undefined;
  /** Each wait is this many times as long as the last. Default: 2. */
  readonly factor?: number | undefined;
  /** The longest wait before jitter. Default: 10 minutes. */
  readonly maxMs?: number | undefined;
  /** The share of a wait, from 0 to 1, by which it is shortened or lengthened at random. Default: 0.5. */
  readonly jitter?: number | undefined;
}

/** The specification says "exponential backoff". It shows neither the schedule nor the maximum. */
export const RETRY_DEFAULTS = { maxAttempts: 10, baseMs: 1_000, factor: 2, maxMs: 600_000, jitter: 0.5 };

export type RetryPlan = { readonly [Key in keyof typeof RETRY_DEFAULTS]: number };

/**
 * The milliseconds from a failed attempt to the next one, or null after the last attempt.
 *
 * @param attempt the number of the attempt that failed, from 1.
 */
export function retryDelayMs(
  plan: RetryPlan,
  attempt: number,
  seed: string,
  drawKey: readonly (string | number)[],
): number | null {
  if (attempt >= plan.maxAttempts) return null;
  // Without a base, a power that is infinite would make no number.
  const times = Math.min(plan.factor ** (attempt - 1), Number.MAX_VALUE);
  const wait = Math.min(plan.baseMs * times, plan.maxMs);
  const swing = plan.jitter * (2 * draw(seed, "jitter", ...drawKey, attempt) - 1);
  return Math.round(wait * (1 + swing));
}
