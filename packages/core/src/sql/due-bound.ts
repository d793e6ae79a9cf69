import { Stopwatch } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";

/** A write whose time is further in the past was computed too long ago, and a due time counts as no earlier. */
export const MAX_WRITE_AGE_MS = 5_000;
/** How long a search for the earliest due time of all may take. It may have to pass over many entries of the index. */
export const OLDEST_DUE_TIMEOUT_MS = 15_000;

/** How often a poll is complete. */
const COMPLETE_POLL_INTERVAL_MS = 600_000;
/** How soon a complete poll that has failed is repeated. Until then, a record that fell due long ago may stay unseen. */
const COMPLETE_POLL_RETRY_MS = 20_000;

export interface PollResult {
  /** The server's clock when the poll began. */
  readonly now: number;
  /** The earliest due time that the poll has left behind; null if nothing was left. */
  readonly oldest: number | null;
}

/** The result of a poll whose answer begins with this row. */
export function pollResultOf(row: Readonly<Record<string, unknown>> | undefined): PollResult {
  return { now: Number(row?.now ?? 0), oldest: rowTimeOf(row?.oldest) };
}

/** A time in a row; null where there is none. */
export function rowTimeOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

export interface BoundDependencies {
  readonly environment: Environment;
  /** The time after which a statement is given up. */
  readonly statementTimeoutMs: number;
  readonly serverNow: () => number;
  /** Searches for the earliest due time of all, however long ago it is. May take long. */
  readonly findOldest: () => Promise<PollResult>;
}

/**
 * The start of polls for due records. As long as anybody holds a snapshot of the database, such as a backup does, the index of
 * due times keeps an entry for each event that has ended. A poll from the beginning would walk over all of them.
 *
 * The rule: a poll begins at the oldest due time that the poll before has left behind, and at least twice the age of a
 * write and twice the statement timeout before the server's time (about 13 s by default). No record that appears later
 * is due before that: the statement of a write sets a due time of at most five seconds ago. The write is visible once
 * this statement has ended. A record that another session had locked was left behind. If the server's clock goes back,
 * so does the bound, with the next poll.
 *
 * The first poll is complete, and so is one every ten minutes. So a record that breaks this rule is found within ten minutes, for
 * example after a due time was set by hand, or after a statement without a time limit.
 */
export class DueBound {
  readonly #dependencies: BoundDependencies;
  /** How much later than its due time a write may appear. */
  readonly #maxLatenessMs: number;
  #start: number | null = null;
  #sinceCompletePoll: Stopwatch | null = null;
  #nextCompletePollMs = COMPLETE_POLL_INTERVAL_MS;
  #completePoll: Promise<void> | null = null;
  #failure: { readonly cause: unknown } | null = null;

  constructor(dependencies: BoundDependencies) {
    this.#dependencies = dependencies;
    // Allows for the statement's timeout, the answer's timeout, and the tolerance for clocks and commits.
    this.#maxLatenessMs = 2 * MAX_WRITE_AGE_MS + 2 * dependencies.statementTimeoutMs;
  }

  /**
   * The start of the next poll, on the server's clock. Only the first complete poll is waited for. If it fails, so does
   * this call.
   */
  async pollStart(): Promise<number> {
    if (this.#sinceCompletePoll === null || this.#sinceCompletePoll.elapsedMs >= this.#nextCompletePollMs) {
      this.#completePoll ??= this.#pollCompletely().finally(() => {
        this.#completePoll = null;
      });
    }
    if (this.#start === null) await this.#completePoll;
    return this.#start ?? this.#latestStart(this.#dependencies.serverNow());
  }

  /**
   * Throws, once, if a complete poll that nobody waited for has failed. A poll that takes records calls this before it
   * begins, so the failure is reported as that of a poll.
   */
  throwFailure(): void {
    const failure = this.#failure;
    this.#failure = null;
    if (failure !== null) throw failure.cause;
  }

  /** Moves the start: a poll that began at `from` had this result. */
  recordPoll(from: number, result: PollResult): void {
    // A complete poll has found something earlier in the meantime.
    if (this.#start !== null && this.#start < from) return;
    this.#start = this.#startAfter(result);
  }

  async #pollCompletely(): Promise<void> {
    this.#sinceCompletePoll = new Stopwatch(this.#dependencies.environment);
    // If it fails, the next is not tried at once, because the failed statement may have taken long.
    this.#nextCompletePollMs = COMPLETE_POLL_RETRY_MS;
    try {
      const start = this.#startAfter(await this.#dependencies.findOldest());
      this.#start = Math.min(this.#start ?? start, start);
      this.#nextCompletePollMs = COMPLETE_POLL_INTERVAL_MS;
    } catch (cause) {
      // The next polls find the records that have become due lately. But records that fell due earlier may stay unseen.
      if (this.#start === null) throw cause;
      this.#failure = { cause };
    }
  }

  #startAfter({ now, oldest }: PollResult): number {
    return Math.min(oldest ?? Number.POSITIVE_INFINITY, this.#latestStart(now));
  }

  #latestStart(now: number): number {
    return Math.floor(now - this.#maxLatenessMs);
  }
}
