import { draw } from "../draw.ts";

/** When a failed delivery is sent again, and how often. */
export interface RetryOptions {
  /** Attempts in all, the first one included. Default: 10. */
  readonly maxAttempts?: number | undefined;
  /** Wait after the first failure. Default: 1 s. */
  readonly baseMs?: number | undefined;
  /** What each wait is multiplied by to give the next. Default: 2. */
  readonly factor?: number | undefined;
  /** The longest wait before jitter. Default: 10 minutes. */
  readonly maxMs?: number | undefined;
  /** Share by which a wait is shortened or lengthened at random, 0 to 1. Default: 0.5. */
  readonly jitter?: number | undefined;
}

/** The specification says "exponential backoff"; schedule and maximum are not shown there. */
export const RETRY_DEFAULTS = { maxAttempts: 10, baseMs: 1_000, factor: 2, maxMs: 600_000, jitter: 0.5 };

export type RetryPlan = { readonly [Key in keyof typeof RETRY_DEFAULTS]: number };

/**
 * Milliseconds from a failed attempt to the next one, or null after the last.
 *
 * @param attempt the number of the attempt that failed, from 1
 */
export function retryDelayMs(
  plan: RetryPlan,
  attempt: number,
  seed: string,
  drawKey: readonly (string | number)[],
): number | null {
  if (attempt >= plan.maxAttempts) return null;
  const wait = Math.min(plan.baseMs * plan.factor ** (attempt - 1), plan.maxMs);
  const swing = plan.jitter * (2 * draw(seed, "jitter", ...drawKey, attempt) - 1);
  return Math.round(wait * (1 + swing));
}
