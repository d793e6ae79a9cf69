import type { EventFacts } from "../../notices/notice.ts";
import type { GivenUp, HeldReason } from "../../protocol/held-reasons.ts";
import type { StoredDelivery } from "./event.ts";

/** The state of one handler for one event. */
export interface HandlerState {
  /** How many attempts count. An attempt does not count if it was begun early and failed, or if it was taken back before it started. */
  readonly attempts: number;
  /** If the state is `started` when the next run begins, the process died during the attempt, or lost its lease. */
  readonly state: "started" | "done" | "failed" | "given-up";
  /** The handler is not called before this time (store's clock); 0: at once. */
  readonly dueAt: number;
  /** How far away that time was when it was written. It shows whether the clock was wrong then. */
  readonly delayWhenWrittenMs: number;
  /** The last error, as text. */
  readonly error: string | null;
  /** Why it was given up; null otherwise. */
  readonly reason: GivenUp | null;
  /** How many effects it skipped, since an earlier run had committed them. Left out if none. */
  readonly skipped?: number;
}

/** The names of onHeld handlers begin with this in a record. Their states start again whenever the event is held again. */
export const ON_HELD_PREFIX = "held:";

/** One line of an event's history. */
export interface HistoryEntry {
  /** The store's clock, in milliseconds since the epoch. */
  readonly at: number;
  /**
   * `accepted`, `held: REASON`, `failed` or `given up: REASON` (of an attempt), `lapsed` (the process died during a run, or was
   * silent for too long), `replay N`, `attempt brought forward`, `and more: N` (contradictions that were counted and not kept), or an end: `done`,
   * `stale` or `discarded`.
   */
  readonly what: string;
  /** The handler that was tried. */
  readonly handler?: string;
  /** The number of this handler's attempt, counted from 1. */
  readonly attempt?: number;
  /** The error that it threw, in one line of at most 200 characters. */
  readonly error?: string;
  /** The person who made the decision. */
  readonly by?: string;
  /** The note of the decision. */
  readonly note?: string;
  /** Of an end: how many effects its handlers skipped, since they had happened before. */
  readonly skipped?: number;
}

/** The input of a run: the content of the slot that it has a lease on. */
export interface LeaseData {
  /** The record's key. */
  readonly key: string;
  /** The slot's key. */
  readonly slot: string;
  readonly eventId: string;
  /** Identifies this run. A write of the run counts only as long as the record has this token. */
  readonly token: string;
  /** `run`: the handlers of the event are called. `onHeld`: it is held, and the onHeld handlers are called. */
  readonly mode: "run" | "onHeld";
  readonly verdict: "run" | HeldReason;
  readonly reason: HeldReason | null;
  readonly detail: string | null;
  /** The id, name and status under which the event was recorded. */
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly referenceId: string | null;
  readonly delivery: StoredDelivery;
  /** The states of the handlers before this run. */
  readonly handlerStates: Readonly<Record<string, HandlerState>>;
  /** Handlers that have not been tried, and that a process which began the event had registered. */
  readonly untriedHandlers: readonly string[];
  /** The handlers that the last replay named; null: all handlers that have not finished. */
  readonly onlyHandlers: readonly string[] | null;
  /** The last replay asked to run the event even if the record of an earlier run may have expired. */
  readonly evenIfExpired: boolean;
  /** The keys of the claims that its record has on references. */
  readonly claims: readonly string[];
  /** How often it was replayed. */
  readonly replays: number;
  /** The last replay asked for its effects to happen again, so it has an `effectId` of its own. */
  readonly repeatEffects: boolean;
  readonly previousStatus: string | null;
  readonly previousAmount: string | null;
  /** The store's clock when the run was begun. */
  readonly now: number;
  /** Handlers are called even before they are due. Such an early attempt does not count if it fails. */
  readonly isEarlyAllowed: boolean;
  /** How long the event had to wait after the write before this run. */
  readonly lastDelayMs: number;
  /** An earlier run of this event held the lease on its subject. */
  readonly hadTurn: boolean;
  /** The handler whose start was written together with the lease; null when a write of its own is needed. */
  readonly started: string | null;
  /** The kept text of the instrumentation of the process that accepted it; null if it has none. */
  readonly trace: string | null;
  /** The PENDING events that ended because this run began. */
  readonly overtaken: readonly EventFacts[];
}

/** The facts about the running event, for notices. */
export function factsOf({ eventId, id, name, status, referenceId, delivery }: LeaseData): EventFacts {
  const { flow, tenant } = delivery;
  return { flow, tenant, eventId, id, event: name, status, referenceId };
}

/** How a run ended. */
export type Ending =
  | { readonly kind: "done" }
  /** At least one handler is to be tried again, in `delayMs`. */
  | { readonly kind: "retry"; readonly delayMs: number }
  /** `onHeld`: the names of the onHeld handlers that are to be called. */
  | {
      readonly kind: "held";
      readonly reason: HeldReason;
      readonly detail: string | null;
      readonly onHeld: readonly string[];
    }
  /** The onHeld handlers are done. The event stays held. */
  | { readonly kind: "stays-held" }
  /** No handler was called. Another process may take the event at once, or after `delayMs`. */
  | { readonly kind: "handed-back"; readonly delayMs?: number }
  /** A later event of its subject has begun. */
  | { readonly kind: "stale" };

/** A new state of one handler. Writing it twice has the same result as writing it once. */
export type HandlerChange =
  | { readonly name: string; readonly kind: "started"; readonly attempt: number }
  | {
      readonly name: string;
      readonly kind: "done";
      readonly attempt: number;
      /** How many effects it skipped. Left out if none. */
      readonly skipped?: number;
    }
  | {
      readonly name: string;
      readonly kind: "failed";
      /** The number of attempts that count so far. If this attempt does not count, it is one less than the number at the start. */
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: string;
    }
  | {
      readonly name: string;
      readonly kind: "given-up";
      readonly attempt: number;
      readonly reason: GivenUp;
      readonly error: string;
    }
  /** Back to `before` (null: never tried). The handler was not called, or it was called early, which does not count. */
  | { readonly name: string; readonly kind: "undone"; readonly before: HandlerState | null };
