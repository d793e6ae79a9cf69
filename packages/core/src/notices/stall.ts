import { type Clock, Stopwatch } from "../time/clock.ts";
import type { StallKind, UndatedNotice } from "./notice.ts";
import { recovered, stalled } from "./notice.ts";

/** A failure is reported after this time. A store that restarts, or fails over, is often back earlier. */
const TOLD_AFTER_MS = 5_000;

interface Failing {
  cause: unknown;
  readonly since: Stopwatch;
  isTold: boolean;
  readonly cancelTimer: () => void;
}

/** An operation that events need. Reports once when it has failed for a while, and once when it works again. */
export class Stall {
  readonly #kind: StallKind;
  readonly #clock: Clock;
  readonly #notify: (notice: UndatedNotice) => void;
  #failing: Failing | null = null;

  constructor(kind: StallKind, clock: Clock, notify: (notice: UndatedNotice) => void) {
    this.#kind = kind;
    this.#clock = clock;
    this.#notify = notify;
  }

  /** Why it failed last, and whether that was reported; null if it works. */
  get failing(): { readonly cause: unknown; readonly isTold: boolean } | null {
    return this.#failing;
  }

  failed(cause: unknown): void {
    if (this.#failing !== null) {
      this.#failing.cause = cause;
      return;
    }
    const failing: Failing = {
      cause,
      since: new Stopwatch(this.#clock),
      isTold: false,
      cancelTimer: this.#clock.after(TOLD_AFTER_MS, () => {
        failing.isTold = true;
        this.#notify(stalled(this.#kind, failing.cause));
      }),
    };
    this.#failing = failing;
  }

  succeeded(): void {
    const failing = this.#failing;
    if (failing === null) return;
    this.end();
    if (failing.isTold) this.#notify(recovered(this.#kind, failing.since.elapsedMs));
  }

  /** Forgets the failure, without a report. */
  end(): void {
    this.#failing?.cancelTimer();
    this.#failing = null;
  }
}
