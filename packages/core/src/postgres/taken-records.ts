import type { DueBound } from "./due-bound.ts";

/** What the end of leases and hidings was found to be. */
export interface LapseResult {
  /** The server's clock when the statement began. */
  readonly now: number;
  /** The earliest end that has passed and was not released, such as that of a record which another session has locked; null if none. */
  readonly left: number | null;
  /** The earliest end within the next `hideMs`; null if none. */
  readonly nextEndAt: number | null;
}

/** What {@link TakenRecords} uses of its store. */
export interface TakenRecordsDependencies {
  readonly bound: DueBound;
  readonly serverNow: () => number;
  /** Makes the records due whose lease or hiding has ended since `from`. */
  readonly release: (from: number, hideMs: number) => Promise<LapseResult>;
}

/**
 * The records that somebody has taken: a run by its lease, or a process by a poll, which has hidden them from others. They are in an index of
 * their own, by the time when that ends. Most of them end long before that time, because their run does. While a session holds a snapshot of
 * the database, the index keeps an entry for each of them, so a look at it can be expensive, and no poll makes one if nothing can have
 * ended since the last look.
 *
 * The rule: a look finds the earliest end of all. Whatever is taken after it is taken for `hideMs` at least. So the next look is due at that
 * end, and `hideMs` later at the latest. A process whose `leaseMs` is shorter than this one's `hideMs` may take records for a shorter time.
 * If it dies, its events are found up to `hideMs` late.
 */
export class TakenRecords {
  readonly #dependencies: TakenRecordsDependencies;
  /** When the last look was, on the server's clock. */
  #lookedAt = Number.POSITIVE_INFINITY;
  #nothingEndsBefore = Number.NEGATIVE_INFINITY;

  constructor(dependencies: TakenRecordsDependencies) {
    this.#dependencies = dependencies;
  }

  /** No lease and no hiding ends before this time (server's clock). */
  get nothingEndsBefore(): number {
    return this.#nothingEndsBefore;
  }

  /** Makes the records due that nobody has any more. */
  async releaseLapsed(hideMs: number): Promise<void> {
    const { bound, serverNow, release } = this.#dependencies;
    const now = serverNow();
    // If the server's clock has gone back, the times of the last look mean nothing.
    if (now >= this.#lookedAt && now < this.#nothingEndsBefore) return;
    const from = await bound.from();
    const found = await release(from, hideMs);
    bound.learn(from, { now: found.now, oldest: found.left });
    this.#lookedAt = found.now;
    this.#nothingEndsBefore = found.left === null ? (found.nextEndAt ?? found.now + hideMs) : found.now;
  }

  /** This process takes a record until this time. */
  take(until: number): void {
    this.#nothingEndsBefore = Math.min(this.#nothingEndsBefore, until);
  }
}
