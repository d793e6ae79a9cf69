import type { Ending, HandlerChange } from "../inbox/record/lease.ts";
import type { Happening } from "../notices/notice.ts";
import type { GivenUp, HeldReason } from "../protocol/held-reasons.ts";
import type { Stopwatch } from "../time/clock.ts";

/** The results so far of the handlers of one run. */
export interface Progress {
  /** States of handlers that have not been written yet. */
  readonly unwritten: HandlerChange[];
  /** Notices to send once those states are written. */
  readonly unnoticed: Happening[];
  /** The handler whose start was written together with the lease; null once the run has reached it. */
  startedAhead: string | null;
  /** Measures the time since the run began. */
  readonly since: Stopwatch;
  /** When the next attempt is due, in ms from now; null when none is. */
  retryInMs: number | null;
  givenUp: { readonly reason: GivenUp; readonly error: string } | null;
  /** The lease is lost, so nothing that this run writes counts any more. */
  lost: boolean;
  /** Nothing was started, so another process may take the event. */
  handedBack: boolean;
}

/** `startedAhead`: the handler whose start was written together with the lease. */
export function newProgress(since: Stopwatch, startedAhead: string | null): Progress {
  return {
    unwritten: [],
    unnoticed: [],
    startedAhead,
    since,
    retryInMs: null,
    givenUp: null,
    lost: false,
    handedBack: false,
  };
}

/**
 * Decides from the results how the run ends. The event is held only if no handler has attempts left: a handler that has failed for
 * good does not stop the others.
 */
export function endingOf({ retryInMs, givenUp, lost, handedBack }: Progress): Ending {
  if (handedBack) return { kind: "handed-back" };
  if (lost) return { kind: "retry", delayMs: 0 };
  if (retryInMs !== null) return { kind: "retry", delayMs: retryInMs };
  return givenUp === null ? { kind: "done" } : held(givenUp.reason, givenUp.error);
}

/** The end of a run that puts its event on hold. */
export function held(reason: HeldReason, detail: string | null): Ending {
  return { kind: "held", reason, detail, onHeld: [] };
}

/** The lease is lost. */
export function lose(progress: Progress): "open" {
  progress.lost = true;
  return "open";
}

/** A handler is called again after this time, so the event runs again then. */
export function retryIn(progress: Progress, ms: number): void {
  progress.retryInMs = Math.min(progress.retryInMs ?? ms, ms);
}
