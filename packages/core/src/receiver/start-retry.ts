import type { UndatedNotice } from "../notices/notice.ts";
import { Stall } from "../notices/stall.ts";
import type { Environment } from "../time/environment.ts";
import { jitterOf } from "../time/jitter.ts";

/**
 * The first pause after an attempt has failed. Each further pause is twice as long, up to the longest. Jitter makes a pause up to
 * a half shorter or longer.
 */
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;

/** Repeats a start that has failed until it succeeds, or is no longer wanted. */
export class StartRetry {
  readonly #environment: Environment;
  readonly #start: () => void;
  readonly #stall: Stall;
  #failures = 0;
  #cancelTimer: (() => void) | null = null;

  constructor(environment: Environment, notify: (notice: UndatedNotice) => void, start: () => void) {
    this.#environment = environment;
    this.#start = start;
    this.#stall = new Stall("start", environment, notify);
  }

  /** Why the last attempt failed; null if none has, or if the start has succeeded. */
  get failure(): { readonly cause: unknown } | null {
    return this.#stall.failure;
  }

  recordFailure(cause: unknown): void {
    this.#stall.recordFailure(cause);
    this.#cancelTimer?.();
    const pauseMs = pauseAfter(this.#failures++, this.#environment.token());
    this.#cancelTimer = this.#environment.after(pauseMs, this.#start);
  }

  recordSuccess(): void {
    this.#cancelTimer?.();
    this.#failures = 0;
    this.#stall.recordSuccess();
  }

  stop(): void {
    this.#cancelTimer?.();
    this.#stall.forget();
  }
}

/** How long to wait before the next attempt, in milliseconds. The token spreads processes that were started together. */
export function pauseAfter(failures: number, token: string): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 20), MAX_PAUSE_MS) * jitterOf(token);
}
