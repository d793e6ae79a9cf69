/** About how long an event may wait in its process for a call. */
const QUEUED_FOR_MS = 5_000;
/** The most events that may wait in the process, even for a quick handler. */
const MAX_WAITING = 256;
/** An event that is put off comes back after this time at the earliest. */
const MIN_OFF_MS = 1_000;
/** And after this time at the latest: the handler may have become quicker since, or its process may have died. */
const MAX_OFF_MS = 30_000;
/** The assumed length of a call before the first has ended. */
const FIRST_GUESS_MS = 1_000;
/** Weight of the newest call in the average. */
const NEWEST = 1 / 16;

/** A place in the queue for a call. */
export interface QueuedCall {
  /** Resolves when the call may begin. */
  readonly come: Promise<void>;
  /** Leaves the queue. If its turn has come, the next event gets the place. */
  leave(): void;
}

/**
 * Limits how many calls of one handler are open in this process at one time. An event that finds no free place waits in a queue:
 * first in, first out. The queue takes as many events as can be called within a few seconds, and at least as many as there are
 * places. Further events are put off, each until its turn should come.
 */
export class CallLimit {
  readonly #places: number;
  readonly #queue = new Set<() => void>();
  #open = 0;
  #overdue = 0;
  #averageMs = FIRST_GUESS_MS;
  /** Until when the places are reserved for events that were put off. */
  #promisedUntil = Number.NEGATIVE_INFINITY;

  constructor(places: number) {
    this.#places = places;
  }

  /** Takes a place, if one is free. */
  take(): boolean {
    if (this.#open >= this.#places) return false;
    this.#open++;
    return true;
  }

  /** Waits for a place. Null if too many events wait, unless this event cannot be put off. */
  wait(mustWait: boolean): QueuedCall | null {
    if (!mustWait && this.#queue.size >= this.#maxWaiting) return null;
    let call = (): void => {};
    const come = new Promise<void>((resolve) => {
      call = resolve;
    });
    this.#queue.add(call);
    return {
      come,
      leave: () => {
        if (!this.#queue.delete(call)) this.giveBack();
      },
    };
  }

  get #maxWaiting(): number {
    const soon = Math.floor((this.#places * QUEUED_FOR_MS) / this.#averageMs);
    return Math.max(this.#places, Math.min(soon, MAX_WAITING));
  }

  /** The delay of an event that is put off, in milliseconds. */
  putOffMs(now: number): number {
    const at = Math.min(Math.max(now + MIN_OFF_MS, this.#promisedUntil), now + MAX_OFF_MS);
    this.#promisedUntil = at + this.#averageMs / this.#places;
    return at - now;
  }

  /** A call has ended, and gives its place back. */
  ended(tookMs: number): void {
    this.#averageMs += (Math.max(0.05, tookMs) - this.#averageMs) * NEWEST;
    this.giveBack();
  }

  /** Gives a place back: the handler was not called after all, or the call no longer counts. */
  giveBack(): void {
    const [next] = this.#queue;
    if (next === undefined) this.#open--;
    else {
      this.#queue.delete(next);
      next();
    }
  }

  /** A call is past its timeout, and keeps its place. True if now all places have such calls. */
  overdue(): boolean {
    return ++this.#overdue === this.#places;
  }

  /** A call that was past its timeout has ended. */
  overdueEnded(tookMs: number): void {
    this.#overdue--;
    this.ended(tookMs);
  }
}
