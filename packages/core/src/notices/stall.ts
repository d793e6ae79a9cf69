import { type Clock, Stopwatch } from "../time/clock.ts";
import type { StallKind, UndatedNotice } from "./notice.ts";
import { recoveredNotice, stalledNotice } from "./notice.ts";

/** A failure is reported after this time. A store that restarts, or fails over, is often back earlier. */
const REPORT_AFTER_MS = 5_000;

interface OngoingFailure {
  cause: unknown;
  readonly since: Stopwatch;
  isReported: boolean;
  readonly cancelTimer: () => void;
}

/** An operation that events need. Reports once when it has failed for a while, and once when it works again. */
export class Stall {
  readonly #kind: StallKind;
  readonly #clock: Clock;
  readonly #notify: (notice: UndatedNotice) => void;
  #failure: OngoingFailure | null = null;

  constructor(kind: StallKind, clock: Clock, notify: (notice: UndatedNotice) => void) {
    this.#kind = kind;
    this.#clock = clock;
    this.#notify = notify;
  }

  /** Why it failed last, and whether that was reported; null if it works. */
  get failure(): { readonly cause: unknown; readonly isReported: boolean } | null {
    return this.#failure;
  }

  recordFailure(cause: unknown): void {
    if (this.#failure !== null) {
      this.#failure.cause = cause;
      return;
    }
    const failure: OngoingFailure = {
      cause,
      since: new Stopwatch(this.#clock),
      isReported: false,
      cancelTimer: this.#clock.after(REPORT_AFTER_MS, () => {
        failure.isReported = true;
        this.#notify(stalledNotice(this.#kind, failure.cause));
      }),
    };
    this.#failure = failure;
  }

  recordSuccess(): void {
    const failure = this.#failure;
    if (failure === null) return;
    this.forget();
    if (failure.isReported) this.#notify(recoveredNotice(this.#kind, failure.since.elapsedMs));
  }

  /** Forgets the failure, without a report. */
  forget(): void {
    this.#failure?.cancelTimer();
    this.#failure = null;
  }
}
