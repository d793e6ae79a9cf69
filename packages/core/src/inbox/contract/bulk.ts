/** Decisions about many events: the choice of the events, the pace, and the result for each. */
import { HELD_REASONS } from "../../protocol/held-reasons.ts";
import type { BulkReason, DecisionResult } from "../record/decisions.ts";
import type { StoredEvent } from "../record/stored-event.ts";
import type { EventQuery } from "./event-query.ts";
import type { UnreadableEvents } from "./unreadable-events.ts";

export type { BulkReason };

/** Every reason that a bulk can name. */
export const BULK_REASONS: Readonly<Record<BulkReason, unknown>> = {
  ...HELD_REASONS,
  done: true,
  discarded: true,
  stale: true,
  unfinished: true,
};

/** The events of a bulk: those that match all of the fields. */
export interface BulkFilter extends Omit<EventQuery, "reason" | "limit" | "cursor" | "first"> {
  /**
   * A held event has the reason for which it is held. A finished event has `done`, `discarded`, `stale`, or the
   * contradiction it was accepted with, such as `mismatch`. A waiting or running event has `unfinished`. By
   * default, a replay and a discard leave out `discarded`, and the reasons that raise the question of what is true,
   * such as `mismatch`. The other decisions include every reason by default.
   */
  readonly reason?: BulkReason | readonly BulkReason[] | undefined;
  /**
   * Only these events, such as those that a `dryRun` has shown. If one of them no longer matches the other fields, it
   * is left alone, as `changed`.
   */
  readonly eventIds?: readonly string[] | undefined;
}

/** The events of a decision: one, several, or all that match. */
export type EventSelection = string | readonly string[] | BulkFilter;

/** How a decision about several events is carried out. */
export interface BulkOptions {
  /** Decide nothing: only report the outcome that each event would have. */
  readonly dryRun?: boolean | undefined;
  /** How many events are decided about in a second. Default 50. */
  readonly perSecond?: number | undefined;
  /**
   * Identifies the bulk. To continue an interrupted bulk, give the same name again: events that it has decided about
   * are skipped. A filter then needs `until`, so that both calls are about the same events. Default: a new name.
   */
  readonly name?: string | undefined;
  /** When it aborts, the current decision is finished, and no further one begins. */
  readonly signal?: AbortSignal | undefined;
  /** Called for each event, with the report so far. */
  readonly progress?: ((outcome: BulkOutcome, report: BulkReport) => void) | undefined;
}

/** The result for one event of a bulk. */
export interface BulkOutcome {
  readonly eventId: string;
  /** The event's reason; null if the inbox does not know the event. */
  readonly reason: BulkReason | null;
  /** `excluded`: its reason was not named. With `dryRun`, `decided` means that it would be decided about. */
  readonly outcome: DecisionResult | "excluded";
  /** The event as it was before; null if the inbox does not know it. */
  readonly event: StoredEvent | null;
}

/** The result of a bulk. */
export interface BulkReport {
  /** The name with which the bulk can be continued: see {@link BulkOptions.name}. */
  readonly name: string;
  /** Events that were accepted at this time or later are not part of it. Null if ids were given. */
  readonly until: number | null;
  readonly dryRun: boolean;
  /** How many events matched. */
  readonly found: number;
  /** How many events were decided about now; with `dryRun`, how many would be. */
  readonly decided: number;
  /** The `decided` events, counted by their reasons. */
  readonly byReason: Readonly<Partial<Record<BulkReason, number>>>;
  /**
   * How many events had been decided about before: by an earlier call of the same name, or, if this is an erasure,
   * erased by anybody. A filter does not find events that wait or run again.
   */
  readonly alreadyDecided: number;
  /**
   * Events with any other outcome, counted by outcome. `overtaken` events have ended without a run. About the others, such as
   * `not-kept`, nothing was decided.
   */
  readonly skipped: Readonly<Partial<Record<Exclude<DecisionResult, "decided" | "already-decided">, number>>>;
  /** Events left undecided because their records cannot be read; null if there are none. They are not among `found`. */
  readonly unreadable: UnreadableEvents | null;
  /** Events left undecided because `reason` does not name their reason, counted by their reason. */
  readonly excluded: Readonly<Partial<Record<BulkReason, number>>>;
  /** False if `signal` has ended the bulk. Then there may be more events. */
  readonly complete: boolean;
}
