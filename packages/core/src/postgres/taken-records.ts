import type { DueBound, PollResult } from "../sql/due-bound.ts";

/** A look at the ends of leases. A poll makes it beside its own work. */
export interface LapseLook {
  /** It finds the ends from this time on (server's clock). */
  readonly from: number;
  /** It also finds the earliest end within so many milliseconds from now. */
  readonly aheadMs: number;
}

/** The result of a look. `oldest` is the earliest end that has passed and whose record was not given out. */
export interface LapseLookResult extends PollResult {
  /** The earliest end within the next `aheadMs`; null if there is none. */
  readonly nextEndAt: number | null;
}

/**
 * The records that somebody has taken: a run by its lease, or a process by a poll that has hidden them from others.
 * They have their own index, ordered by the time at which the lease or the hiding ends. Most runs end long before that.
 * While a session holds a snapshot of the database, the index keeps an entry for each of them, so a look at it can be
 * expensive, and few polls make one.
 *
 * The rule: a look finds the earliest end of the next `hideMs / 2`. A record that another process takes after the look
 * stays taken for at least `hideMs`. This process knows which records it takes itself. So the next look is due at the
 * end that the last one has found, or after `hideMs / 2` if it has found none. A process whose `leaseMs` is shorter than this one's `hideMs` may take records for a
 * shorter time. If it dies, its events are found up to `hideMs / 2` late.
 */
export class TakenRecords {
  readonly #bound: DueBound;
  /** When the last look was, on the server's clock. */
  #lookedAt = Number.POSITIVE_INFINITY;
  #nothingEndsBefore = Number.NEGATIVE_INFINITY;
  /** The earliest end of the records that this process has taken since the last look began. The look may not have seen it. */
  #ownEndAt = Number.POSITIVE_INFINITY;

  constructor(bound: DueBound) {
    this.#bound = bound;
  }

  /** No lease and no hiding ends before this time (server's clock). */
  get nothingEndsBefore(): number {
    return this.#nothingEndsBefore;
  }

  /** The look that the next poll makes; null if nothing can have ended since the last one. */
  async nextLook(now: number, hideMs: number): Promise<LapseLook | null> {
    // If the server's clock has gone back, the times of the last look mean nothing.
    if (now >= this.#lookedAt && now < this.#nothingEndsBefore) return null;
    const from = await this.#bound.from();
    this.#ownEndAt = Number.POSITIVE_INFINITY;
    return { from, aheadMs: Math.ceil(hideMs / 2) };
  }

  /** A poll that made this look has found this. */
  learn(look: LapseLook, found: LapseLookResult): void {
    this.#bound.learn(look.from, found);
    this.#lookedAt = found.now;
    const nextAt = found.oldest === null ? (found.nextEndAt ?? found.now + look.aheadMs) : found.now;
    this.#nothingEndsBefore = Math.min(nextAt, this.#ownEndAt);
  }

  /** This process has taken a record until this time. */
  noteTakenUntil(until: number): void {
    this.#ownEndAt = Math.min(this.#ownEndAt, until);
    this.#nothingEndsBefore = Math.min(this.#nothingEndsBefore, until);
  }
}
