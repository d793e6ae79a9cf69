import type { HeldReason } from "../../protocol/held-reasons.ts";
import type {
  Decision,
  EraseDecision,
  ReplayDecision,
  RetryDecision,
  StoredEvent,
} from "../record/stored-event.ts";
import type { BulkOptions, BulkReport, EventSelection } from "./bulk.ts";
import type { EventQuery } from "./event-query.ts";
import type { SubjectOrder } from "./subject-order.ts";
import type { UnreadableEvents } from "./unreadable-events.ts";

/** A page of a list. */
export interface EventPage {
  /** A page may have fewer events than `limit`, or none, and still not be the last. See `next`. */
  readonly events: readonly StoredEvent[];
  /** The cursor of the next page; null if this is the last. */
  readonly next: string | null;
  /** Events that are not on this page, because their records cannot be read; null if there are none. */
  readonly unreadable: UnreadableEvents | null;
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

/** The events of an inbox: shows them, and takes decisions about them. */
export interface Events {
  /** One event, or null if the inbox does not know it. */
  get(eventId: string): Promise<StoredEvent | null>;
  /**
   * One page of the events that match. Decisions of other people between two pages skip no event.
   * @throws PayhooksError `ERR_OPTION_INVALID` for a query that is not valid; `ERR_OPTION_MISSING` for an id or a
   * reference without a tenant if a resolver chooses the keys; `ERR_NOT_SEARCHABLE` if the inbox does not list such
   * events.
   */
  list(query?: EventQuery): Promise<EventPage>;
  /**
   * The SUCCESS that has the reference of an event that is held as `reference-reused`. Null for any other event, or if
   * no event has the reference any more.
   */
  referenceHolder(eventId: string): Promise<StoredEvent | null>;
  /**
   * The events of the same subject, such as those about one connected account, in the order of their signed times. Null
   * if there is no such event, or if it has no subject.
   */
  subjectOrder(eventId: string): Promise<SubjectOrder | null>;
  /** How many events are not finished, and how long the oldest has waited. */
  counts(): Promise<EventCounts>;
  /**
   * Makes held or finished events wait again: one, several, or all that match a filter. A finished event can run again
   * only if its signed text was kept (`keep` of its flow). Of several events, those that cannot run again are skipped,
   * and the report says why.
   * @throws PayhooksError for one event: `ERR_EVENT_NOT_FOUND` when no held or finished event has this eventId,
   * `ERR_EVENT_CHANGED` when the event has another `revision` than the decision names, `ERR_NOT_DECIDABLE` when it
   * cannot run again. `ERR_OPTION_INVALID`, `ERR_OPTION_MISSING`.
   */
  replay(which: EventSelection, decision: ReplayDecision & BulkOptions): Promise<BulkReport>;
  /**
   * Makes the next attempts of events due now, instead of after their backoff: after an outage, the next attempt may be
   * an hour away. These attempts count like any other. By default, a filter is about `retrying` events; with the state
   * `waiting`, about waiting events.
   * @throws PayhooksError for one event: `ERR_EVENT_NOT_FOUND` when there is none, `ERR_NOT_DECIDABLE` when it runs, is
   * due, is held or has ended. `ERR_OPTION_INVALID`, `ERR_OPTION_MISSING`.
   */
  retryNow(which: EventSelection, decision: RetryDecision & BulkOptions): Promise<BulkReport>;
  /**
   * Discards held events for good. Their copies stay duplicates.
   * @throws PayhooksError for one event: `ERR_EVENT_NOT_FOUND` when no held event has this eventId, `ERR_EVENT_CHANGED`
   * when it has another `revision` than the decision names. `ERR_OPTION_INVALID`, `ERR_OPTION_MISSING`.
   */
  discard(which: EventSelection, decision: Decision & BulkOptions): Promise<BulkReport>;
  /**
   * Erases the contents of events: signed texts, references, ids, amounts, errors, histories. Their copies are still
   * recognised. A filter includes events of every reason, unless it names reasons.
   * @throws PayhooksError for one event: `ERR_EVENT_NOT_FOUND` when there is none, `ERR_NOT_DECIDABLE` when it runs, or
   * has not ended. `ERR_OPTION_INVALID`, `ERR_OPTION_MISSING`.
   */
  erase(which: EventSelection, decision: EraseDecision & BulkOptions): Promise<BulkReport>;
}

/** The events of an inbox, as a receiver asks for them. */
export interface InboxEvents extends Events {
  /**
   * @param flows the names of the flows in which an id is looked up, if the query names none. Default: those of the service. An
   * inbox that keeps no index reads the record of the id in each of them.
   */
  list(query?: EventQuery, flows?: readonly string[]): Promise<EventPage>;
}

/**
 * Every event that matches, page by page.
 *
 * @param onUnreadable gets the events of each page that cannot be read
 */
export async function* eachEvent(
  events: Pick<Events, "list">,
  query: Omit<EventQuery, "cursor"> = {},
  onUnreadable: (events: UnreadableEvents) => void = () => {},
): AsyncGenerator<StoredEvent> {
  let cursor: string | null = null;
  do {
    const page: EventPage = await events.list({ limit: 100, ...query, cursor });
    if (page.unreadable !== null) onUnreadable(page.unreadable);
    yield* page.events;
    cursor = page.next;
  } while (cursor !== null);
}
