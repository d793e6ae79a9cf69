import type { EventFacts } from "../../notices/notice.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { StoredDelivery } from "./event.ts";
import type { HandlerState } from "./handler-state.ts";

/** The input of a run: the content of the slot that it has a lease on. */
export interface RunInput {
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
  readonly startedHandler: string | null;
  /** The kept text of the instrumentation of the process that accepted it; null if it has none. */
  readonly trace: string | null;
  /** The events of earlier statuses (PENDING, or earlier stages of a source) that ended because this run began. */
  readonly overtaken: readonly EventFacts[];
}

/** The facts about the running event, for notices. */
export function factsOf({ eventId, id, name, status, referenceId, delivery }: RunInput): EventFacts {
  const { flow, tenant } = delivery;
  return { flow, tenant, eventId, id, event: name, status, referenceId };
}
