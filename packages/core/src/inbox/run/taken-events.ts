import type { Clock } from "../../time/clock.ts";
import type { DueRecord } from "../contract/store.ts";
import type { Lane } from "../record/lane.ts";
import { LaneQueues } from "./lane-queues.ts";
import type { Places } from "./places.ts";
import type { RunRequest } from "./run.ts";

/** An event that a poll has found. */
export interface TakenEvent {
  readonly lane: Lane;
  readonly due: DueRecord;
  readonly request: RunRequest;
  /** When it was taken (monotonic clock). */
  readonly since: number;
}

/**
 * Events that polls have found, and that are begun once a place is nearly free. The store hides them from other
 * processes meanwhile. Each counts among the taken ones of {@link Places} until it is removed.
 */
export class TakenEvents {
  readonly #queues = new LaneQueues<TakenEvent>();
  readonly #places: Places;
  readonly #clock: Clock;

  constructor(places: Places, clock: Clock) {
    this.#places = places;
    this.#clock = clock;
  }

  isEmpty(lane: Lane): boolean {
    return this.#queues.isEmpty(lane);
  }

  add(due: DueRecord, request: RunRequest, lane: Lane): void {
    this.#places.addTaken(lane);
    this.#queues.push({ lane, due, request, since: this.#clock.monotonic() });
  }

  /** Removes the events that may be begun now. Each has to be begun before the next one is asked for. */
  *removeReady(): Generator<TakenEvent> {
    const canBegin = (lane: Lane): boolean => this.#places.canBegin(lane);
    for (let next = this.#queues.next(canBegin); next !== undefined; next = this.#queues.next(canBegin)) {
      this.#places.removeTaken(next.lane);
      yield next;
    }
  }

  /** Removes the events that have waited for this long. */
  removeLongWaiting(waitedMs: number): readonly TakenEvent[] {
    const before = this.#clock.monotonic() - waitedMs;
    return this.#remove(({ since }) => since <= before);
  }

  removeAll(): readonly TakenEvent[] {
    return this.#remove(() => true);
  }

  #remove(isWanted: (event: TakenEvent) => boolean): readonly TakenEvent[] {
    const removed = [...this.#queues.takeWhile(isWanted)];
    for (const { lane } of removed) this.#places.removeTaken(lane);
    return removed;
  }
}
