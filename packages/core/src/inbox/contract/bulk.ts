/** Decisions about many events: which ones, how fast, and what became of each. */
import { HELD_REASONS } from "../../protocol/held-reasons.ts";
import type { Decided, ReasonOrState } from "../record/decisions.ts";
import type { StoredEvent } from "../record/life.ts";
import type { EventQuery } from "./event-query.ts";
import type { UnreadEvents } from "./unread-events.ts";

export type { ReasonOrState };

/** Every reason that a bulk can name. */
export const BULK_REASONS: Readonly<Record<ReasonOrState, unknown>> = {
  ...HELD_REASONS,
  done: true,
  discarded: true,
  stale: true,
  unfinished: true,
};

/** The events of a bulk: those that match all of the fields. */
export interface BulkFilter extends Omit<EventQuery, "reason" | "limit" | "cursor" | "first"> {
  /**
   * For held events, the reason. For finished ones, `done`, `discarded`, `stale`, or the contradiction that they were accepted as,
   * such as `mismatch`. For waiting or running ones, `unfinished`. By default, a replay and a discard leave out `discarded`, and the
   * reasons that are questions of what is true, such as `mismatch`. The other decisions are about events of every reason.
   */
  readonly reason?: ReasonOrState | readonly ReasonOrState[] | undefined;
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
   * Identifies the bulk. Give the same name again to go on with a bulk that was interrupted: events that it has decided about are
   * skipped. A filter needs `until` then, so that both calls are about the same events. Default: a new name.
   */
  readonly name?: string | undefined;
  /** Once it aborts, the decision that is under way is finished, and no other one is begun. */
  readonly signal?: AbortSignal | undefined;
  /** Called for each event, with the report so far. */
  readonly progress?: ((outcome: BulkOutcome, report: BulkReport) => void) | undefined;
}

/** The result for one event of a bulk. */
export interface BulkOutcome {
  readonly eventId: string;
  /** The reason by which it was named; null if the inbox does not know it. */
  readonly reason: ReasonOrState | null;
  /** `excluded`: its reason was not named. With `dryRun`, `decided` means that it would be decided about. */
  readonly outcome: Decided | "excluded";
  /** As it was before; null if the inbox does not know it. */
  readonly event: StoredEvent | null;
}

/** The result of a bulk. */
export interface BulkReport {
  /** To go on with it: see {@link BulkOptions.name}. */
  readonly name: string;
  /** Events that were accepted at this time or later are not part of it. Null if ids were given. */
  readonly until: number | null;
  readonly dryRun: boolean;
  /** How many events were looked at. */
  readonly found: number;
  /** How many events were decided about now; with `dryRun`, how many would be. */
  readonly decided: number;
  /** The `decided` events, counted by their reasons. */
  readonly byReason: Readonly<Partial<Record<ReasonOrState, number>>>;
  /**
   * How many events had been decided about before: by an earlier call of the same name, or, if this is an erasure, erased by anybody.
   * A filter does not find events that wait or run again.
   */
  readonly alreadyDecided: number;
  /**
   * Events with any other outcome, counted by it. Those that are `overtaken` have ended without a run. Nothing was decided about the
   * others, such as those that are `not-kept`.
   */
  readonly skipped: Readonly<Partial<Record<Exclude<Decided, "decided" | "already-decided">, number>>>;
  /** Events left undecided because their records cannot be read; null if there are none. They are not among `found`. */
  readonly unread: UnreadEvents | null;
  /** Events left undecided because `reason` does not name their reason, counted by their reason. */
  readonly excluded: Readonly<Partial<Record<ReasonOrState, number>>>;
  /** False if it was ended by its signal, so that there may be more. */
  readonly complete: boolean;
}
