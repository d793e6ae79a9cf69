import type { DueBound, PollResult } from "../sql/due-bound.ts";

/** A query for the ends of leases. A poll makes it beside its own work. */
export interface LapseQuery {
  /** It finds the ends from this time on (server's clock). */
  readonly from: number;
  /** It also finds the earliest end within so many milliseconds from now. */
  readonly aheadMs: number;
}

/** The result of a query. `oldest` is the earliest end that has passed and whose record was not given out. */
export interface LapseQueryResult extends PollResult {
  /** The earliest end within the next `aheadMs`; null if there is none. */
  readonly nextEndAt: number | null;
}

/**
 * The records that somebody has taken: a run by its lease, or a process by a poll that has hidden them from others.
 * They have their own index, ordered by the time at which the lease or the hiding ends. Most runs end long before that.
 * While a session holds a snapshot of the database, the index keeps an entry for each of them, so a query of it can be
 * expensive, and few polls make one.
 *
 * The rule: each query returns the earliest end within the next `hideMs / 2`. A record that another process takes after
 * the query stays taken for at least `hideMs`, and this process knows which records it takes itself. So the next query
 * is due at the end that the last one has found, or after `hideMs / 2` if it has found none. A process whose `leaseMs`
 * is shorter than this one's `hideMs` may take records for a shorter time. If it dies, its events are found up to
 * `hideMs / 2` late.
 */
export class TakenRecords {
  readonly #bound: DueBound;
  /** When the last query was, on the server's clock. */
  #queriedAt = Number.POSITIVE_INFINITY;
  #nothingEndsBefore = Number.NEGATIVE_INFINITY;
  /** The earliest end of the records that this process has taken since the last query began. The query may not have seen it. */
  #ownEndAt = Number.POSITIVE_INFINITY;

  constructor(bound: DueBound) {
    this.#bound = bound;
  }

  /** No lease and no hiding ends before this time (server's clock). */
  get nothingEndsBefore(): number {
    return this.#nothingEndsBefore;
  }

  /** The query that the next poll makes; null if nothing can have ended since the last one. */
  async nextQuery(now: number, hideMs: number): Promise<LapseQuery | null> {
    // If the server's clock has gone back, the times of the last query mean nothing.
    if (now >= this.#queriedAt && now < this.#nothingEndsBefore) return null;
    const from = await this.#bound.pollStart();
    this.#ownEndAt = Number.POSITIVE_INFINITY;
    return { from, aheadMs: Math.ceil(hideMs / 2) };
  }

  /** A poll that made this query has had this result. */
  recordResult(query: LapseQuery, result: LapseQueryResult): void {
    this.#bound.recordPoll(query.from, result);
    this.#queriedAt = result.now;
    const nextAt = result.oldest === null ? (result.nextEndAt ?? result.now + query.aheadMs) : result.now;
    this.#nothingEndsBefore = Math.min(nextAt, this.#ownEndAt);
  }

  /** This process has taken a record until this time. */
  noteTakenUntil(until: number): void {
    this.#ownEndAt = Math.min(this.#ownEndAt, until);
    this.#nothingEndsBefore = Math.min(this.#nothingEndsBefore, until);
  }
}
