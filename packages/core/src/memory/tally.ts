import type { StoreCounts } from "../inbox/contract/store.ts";
import type { EventLabels, EventState } from "../inbox/record/index-of.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";

/** Counts the events in each state. */
export class Tally {
  readonly #byState: Record<EventState, number> = {
    waiting: 0,
    retrying: 0,
    running: 0,
    held: 0,
    finished: 0,
  };
  readonly #byReason: Partial<Record<HeldReason, number>> = {};

  /** Events that wait or run. */
  get unfinished(): number {
    return this.#byState.waiting + this.#byState.retrying + this.#byState.running;
  }

  /** Adds these events (1), or removes them (-1). */
  count(events: readonly EventLabels[], by: 1 | -1): void {
    for (const { state, reason } of events) {
      this.#byState[state] += by;
      if (reason !== null) this.#byReason[reason] = (this.#byReason[reason] ?? 0) + by;
    }
  }

  get counts(): Omit<StoreCounts, "oldestDueAt"> {
    const { finished: _, ...counts } = this.#byState;
    return { ...counts, heldBy: { ...this.#byReason } };
  }
}

/** How many of these events wait or run. */
export function countUnfinished(events: readonly EventLabels[]): number {
  let unfinished = 0;
  for (const { state } of events) if (state !== "held" && state !== "finished") unfinished++;
  return unfinished;
}
