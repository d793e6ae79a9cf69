import type { FlowName } from "../../protocol/events.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import type { EventState } from "../record/index-of.ts";

/** Selects the events that match all of the fields. */
export interface EventFilter {
  /** `any` includes finished events. Default: every event that is not `finished`. */
  readonly state?: EventState | "any" | undefined;
  readonly flow?: FlowName | undefined;
  readonly tenant?: string | undefined;
  /** The event's name, such as `DEPOSIT`. */
  readonly event?: string | undefined;
  /** Why it is held. */
  readonly reason?: HeldReason | undefined;
  readonly referenceId?: string | undefined;
  /** `payTxnId`, `idempotency_key` or the id that a source gives. */
  readonly id?: string | undefined;
  /** Accepted at this time or later, in milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** Accepted before this time. */
  readonly until?: number | undefined;
}

/** A range of amounts, which are compared exactly, digit by digit: `{ min: "100", max: "999.99" }`. Both ends belong to it. */
export interface AmountRange {
  readonly min?: string | undefined;
  readonly max?: string | undefined;
}

/**
 * Selects events, and one part of their list. With `id` or `referenceId`, it finds events of every state, unless you give a
 * `state`. Ids and references belong to a tenant: without `tenant`, it finds only events without a tenant. An event that is held
 * because it has several readings is found by the id or the reference of any reading.
 */
export interface EventQuery extends Omit<EventFilter, "state"> {
  /** `finished` is any end. Default: `unfinished`; with `id` or `referenceId`: any. */
  readonly state?: EventState | "unfinished" | undefined;
  /**
   * Only events with an amount in this range. An event without a certain amount is in no range. Amounts have no
   * currency. No store has an index of amounts: each event that matches the other fields is read.
   */
  readonly amount?: AmountRange | undefined;
  /**
   * Only events for which this handler was called. Ended events remember only the handlers that failed. No store has an index of
   * this either.
   */
  readonly handler?: string | undefined;
  /** How many events one page has at most, from 1 to 1,000. Default 50. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. Default: the first page. */
  readonly cursor?: string | null | undefined;
  /** The end of the list that comes first, by the time of acceptance. Default `oldest`. */
  readonly first?: "oldest" | "newest" | undefined;
}
