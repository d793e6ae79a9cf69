/** About how long an event may wait in its process for a call. */
const MAX_QUEUE_TIME_MS = 5_000;
/** The most events that may wait in the process, even for a quick handler. */
const MAX_QUEUED_EVENTS = 256;
/** A deferred event comes back after this time at the earliest. */
const MIN_DEFER_MS = 1_000;
/** And after this time at the latest: the handler may have become quicker since, or its process may have died. */
const MAX_DEFER_MS = 30_000;
/** The assumed length of a call before the first has ended. */
const ASSUMED_CALL_MS = 1_000;
/** Weight of the newest call in the average. */
const NEWEST_WEIGHT = 1 / 16;

/** A place in the queue for a call. */
export interface QueuedCall {
  /** Resolves when the call may begin. */
  readonly turn: Promise<void>;
  /** Leaves the queue. If its turn has come, the next event gets the place. */
  leaveQueue(): void;
}

/**
 * Limits how many calls of one handler are open in this process at one time. An event that finds no free place waits in a queue:
 * first in, first out. The queue takes as many events as can be called within a few seconds, and at least as many as there are
 * places. Further events are deferred, each until its turn should come.
 */
export class CallLimit {
  readonly #places: number;
  readonly #queue = new Set<() => void>();
  #openCalls = 0;
  #overdueCalls = 0;
  #averageMs = ASSUMED_CALL_MS;
  /** Until when the places are reserved for deferred events. */
  #reservedUntil = Number.NEGATIVE_INFINITY;

  constructor(places: number) {
    this.#places = places;
  }

  /** Takes a place, if one is free. */
  tryTake(): boolean {
    if (this.#openCalls >= this.#places) return false;
    this.#openCalls++;
    return true;
  }

  /** Waits for a place. Null if too many events wait, unless this event cannot be deferred. */
  enqueue(canDefer: boolean): QueuedCall | null {
    if (canDefer && this.#queue.size >= this.#maxQueuedEvents) return null;
    let call = (): void => {};
    const turn = new Promise<void>((resolve) => {
      call = resolve;
    });
    this.#queue.add(call);
    return {
      turn,
      leaveQueue: () => {
        if (!this.#queue.delete(call)) this.release();
      },
    };
  }

  get #maxQueuedEvents(): number {
    const callableSoon = Math.floor((this.#places * MAX_QUEUE_TIME_MS) / this.#averageMs);
    return Math.max(this.#places, Math.min(callableSoon, MAX_QUEUED_EVENTS));
  }

  /** The delay of a deferred event, in milliseconds. */
  deferMs(now: number): number {
    const dueAt = Math.min(Math.max(now + MIN_DEFER_MS, this.#reservedUntil), now + MAX_DEFER_MS);
    this.#reservedUntil = dueAt + this.#averageMs / this.#places;
    return dueAt - now;
  }

  /** A call has ended, and releases its place. */
  recordCallEnd(tookMs: number): void {
    this.#averageMs += (Math.max(0.05, tookMs) - this.#averageMs) * NEWEST_WEIGHT;
    this.release();
  }

  /** Releases a place: the handler was not called after all, or the call no longer counts. */
  release(): void {
    const [nextCall] = this.#queue;
    if (nextCall === undefined) this.#openCalls--;
    else {
      this.#queue.delete(nextCall);
      nextCall();
    }
  }

  /** A call is past its timeout, and keeps its place. True if now all places have such calls. */
  recordOverdueCall(): boolean {
    return ++this.#overdueCalls === this.#places;
  }

  /** A call that was past its timeout has ended. */
  recordOverdueCallEnd(tookMs: number): void {
    this.#overdueCalls--;
    this.recordCallEnd(tookMs);
  }
}
