import type { FlowName } from "../protocol/events.ts";
import type { HeldReason } from "../protocol/held-reasons.ts";
import type { EventState, EventSummary } from "./record/index-of.ts";

/**
 * What to look for: a payment by its transaction or by the merchant's reference, or a webhook by its key. An entry that is
 * held because it can be read in several ways is found by what any of its readings says.
 */
export type FindQuery = (
  | { readonly payTxnId: string; readonly idempotencyKey?: never; readonly referenceId?: never }
  | { readonly idempotencyKey: string; readonly payTxnId?: never; readonly referenceId?: never }
  | { readonly referenceId: string; readonly payTxnId?: never; readonly idempotencyKey?: never }
) & {
  /** The tenant, as the key resolver names it. Required with an id if a resolver chooses the keys. */
  readonly tenant?: string | undefined;
};

/** Which events to list: those that match all of the fields. */
export interface EventFilter {
  /** Default: everything that is not `finished`. */
  readonly state?: EventState | undefined;
  readonly flow?: FlowName | undefined;
  readonly tenant?: string | undefined;
  /** The event's name, such as `DEPOSIT`. */
  readonly event?: string | undefined;
  /** Why it is held. */
  readonly reason?: HeldReason | undefined;
  readonly referenceId?: string | undefined;
  /** `payTxnId` or `idempotency_key`. */
  readonly id?: string | undefined;
  /** Accepted at this time or later, in milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** Accepted before this time. */
  readonly until?: number | undefined;
}

/** Which part of a list to return. */
export interface ListOptions {
  /** How many events one page has at most, from 1 to 1,000. Default 50. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. Default: the first page. */
  readonly cursor?: string | null | undefined;
  /** Which end of the list comes first, by the time of acceptance. Default `oldest`. */
  readonly first?: "oldest" | "newest" | undefined;
}

/** A page of a list. */
export interface EventPage {
  /** A page may have fewer events than `limit`, or none, and still not be the last. See `next`. */
  readonly events: readonly EventSummary[];
  /** The cursor of the next page; null if this is the last. */
  readonly next: string | null;
}

/** How many events are in each state, over all processes. */
export interface EventCounts {
  /** Events that wait for their first run. */
  readonly waiting: number;
  /** Events that wait for another attempt. */
  readonly retrying: number;
  readonly running: number;
  readonly held: number;
  /** Held events by their reason. A reason without any is left out. */
  readonly heldBy: Readonly<Partial<Record<HeldReason, number>>>;
  /** For how long the event that waits longest has been due, in milliseconds; null when none is due. */
  readonly oldestDueMs: number | null;
}

/** The events of an inbox, for looking at them. */
export interface EventEntries {
  /**
   * One page of the events that match the filter.
   * @throws PayhooksError `ERR_OPTION_INVALID` for a filter, a limit or a cursor that is not valid.
   */
  list(filter?: EventFilter, options?: ListOptions): Promise<EventPage>;
  /** How many events are not finished, and how long the oldest has waited. */
  counts(): Promise<EventCounts>;
}
