/**
 * The times at which this process lets others poll first.
 *
 * Suppose that the store has handed this process a record that only others can run, during a deploy for example. When that
 * record becomes visible again, this process does not poll at once, so that one of the others is first.
 */

/** How long the others' head start lasts, and the longest time that one poll is put off. */
const HEAD_START_MS = 1_000;

/** A span of time on the monotonic clock. Spans that overlap are one. */
interface Span {
  readonly from: number;
  readonly to: number;
}

export class HeadStarts {
  /** In the order of their times. */
  #spans: readonly Span[] = [];
  /** Until when the next poll is put off. Null before it has been put off. */
  #putOffUntil: number | null = null;

  /** Records that only others can run become visible again at this time, which is later than in all calls before. */
  give(visibleAt: number): void {
    const to = visibleAt + HEAD_START_MS;
    const last = this.#spans.at(-1);
    if (last === undefined || last.to < visibleAt) this.#spans = [...this.#spans, { from: visibleAt, to }];
    else this.#spans = [...this.#spans.slice(0, -1), { from: last.from, to }];
  }

  /**
   * How long a poll has to wait that is due now: 0, or until the head start ends. One poll is put off once. A process that
   * is handed such records all the time polls for its own events nevertheless.
   */
  waitMs(now: number): number {
    if (this.#putOffUntil === null) {
      const span = this.#spans.find(({ from, to }) => from <= now && now < to);
      if (span !== undefined) this.#putOffUntil = Math.min(span.to, now + HEAD_START_MS);
    }
    return Math.max(0, (this.#putOffUntil ?? now) - now);
  }

  /** A poll begins now. The next one may be put off again. */
  onPoll(now: number): void {
    this.#putOffUntil = null;
    this.#spans = this.#spans.filter(({ to }) => to > now);
  }
}
