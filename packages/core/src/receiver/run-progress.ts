import type { HandlerChange } from "../inbox/record/handler-state.ts";
import type { RunOutcome } from "../inbox/record/run-outcome.ts";
import type { UndatedNotice } from "../notices/notice.ts";
import type { GiveUpReason, HeldReason } from "../protocol/held-reasons.ts";
import type { Stopwatch } from "../time/clock.ts";

/** The results so far of the handlers of one run. */
export interface RunProgress {
  /** States of handlers that have not been written yet. */
  readonly unwrittenChanges: HandlerChange[];
  /** Notices to send once those states are written. */
  readonly unsentNotices: UndatedNotice[];
  /** The handler whose start was written together with the lease; null once the run has reached it. */
  startedAhead: string | null;
  /** Measures the time since the run began. */
  readonly since: Stopwatch;
  /** When the next attempt is due, in ms from now; null when none is. */
  retryInMs: number | null;
  givenUp: { readonly reason: GiveUpReason; readonly error: string } | null;
  /** The lease is lost, so nothing that this run writes counts any more. */
  isLeaseLost: boolean;
  /** Nothing was started, so another process may take the event. */
  isHandedBack: boolean;
}

/** `startedAhead`: the handler whose start was written together with the lease. */
export function newRunProgress(since: Stopwatch, startedAhead: string | null): RunProgress {
  return {
    unwrittenChanges: [],
    unsentNotices: [],
    startedAhead,
    since,
    retryInMs: null,
    givenUp: null,
    isLeaseLost: false,
    isHandedBack: false,
  };
}

/**
 * Decides from the results how the run ends. The event is held only if no handler has attempts left: a handler that has
 * failed for good does not stop the others.
 */
export function outcomeOf({ retryInMs, givenUp, isLeaseLost, isHandedBack }: RunProgress): RunOutcome {
  if (isHandedBack) return { kind: "handed-back" };
  if (isLeaseLost) return { kind: "retry", delayMs: 0 };
  if (retryInMs !== null) return { kind: "retry", delayMs: retryInMs };
  return givenUp === null ? { kind: "done" } : heldOutcome(givenUp.reason, givenUp.error);
}

/** The end of a run that puts its event on hold. */
export function heldOutcome(reason: HeldReason, detail: string | null): RunOutcome {
  return { kind: "held", reason, detail, onHeld: [] };
}

/** The lease is lost. */
export function loseLease(progress: RunProgress): "open" {
  progress.isLeaseLost = true;
  return "open";
}

/** A handler is called again after this time, so the event runs again then. */
export function scheduleRetry(progress: RunProgress, ms: number): void {
  progress.retryInMs = Math.min(progress.retryInMs ?? ms, ms);
}
