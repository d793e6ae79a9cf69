import { checkChoice, checkNames } from "../../protocol/check-names.ts";
import { invalidOptionError, isNotSearchable, PayhooksError } from "../../protocol/errors.ts";
import { FLOWS, isFlowName } from "../../protocol/events.ts";
import { describeValue, stringOf } from "../../protocol/foreign-value.ts";
import { HELD_REASONS } from "../../protocol/held-reasons.ts";
import type { EventFilter, EventQuery } from "../contract/event-query.ts";
import type { EventCounts, EventPage } from "../contract/events.ts";
import type { ListCursor, ListedEvent, ListOrder } from "../contract/store.ts";
import type { SubjectOrder } from "../contract/subject-order.ts";
import { isUnreadable, readableRecord } from "../record/codec.ts";
import { eventIn } from "../record/decisions.ts";
import { isEventId, recordKeyOf } from "../record/event.ts";
import { EVENT_STATES, type EventState, indexOf } from "../record/index-of.ts";
import { claimKeyFor, ONLY_TENANT, recordKeyFor } from "../record/keys.ts";
import { labelOf } from "../record/label.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import type { StoredEvent } from "../record/stored-event.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { unreadableError } from "../write/records.ts";
import { type EventPredicate, predicateOf } from "./event-predicate.ts";
import { ListPageBuilder } from "./listing.ts";
import { readSubjectOrder } from "./read-order.ts";
import { findUnsearched, UnreadableCounter } from "./unreadable.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
/**
 * How many pages of the store one call reads at most. Without this limit, a filter that few events match would make a call long.
 */
const MAX_PAGES = 20;
/** How many events are read from the store at one time when a filter has no index. */
const FILTERED_PAGE_SIZE = 200;

/** The request for one page of a list. */
interface PageRequest {
  readonly limit: number;
  readonly cursor: ListCursor | null;
  readonly first: ListOrder;
  readonly predicate: EventPredicate | null;
}

/** Reads and searches the events of a store. */
export class EventReader {
  readonly #core: InboxCore;
  readonly #ready: () => Promise<void>;

  constructor(core: InboxCore, ready: () => Promise<void>) {
    this.#core = core;
    this.#ready = ready;
  }

  async get(eventId: string): Promise<StoredEvent | null> {
    await this.#ready();
    if (!isEventId(eventId)) return null;
    const [versioned = null] = await this.#core.store.read([recordKeyOf(eventId)]);
    if (versioned === null) return null;
    if (isUnreadable(versioned.record)) throw unreadableError(versioned.record);
    return eventIn(versioned.record, eventId);
  }

  async list(query: EventQuery = {}, flows: readonly string[] = Object.keys(FLOWS)): Promise<EventPage> {
    const { limit = DEFAULT_LIMIT, cursor, first = "oldest" } = checkQuery(query);
    const request: PageRequest = { limit, cursor: parseCursor(cursor), first, predicate: predicateOf(query) };
    const filter = filterOf(query);
    await this.#ready();
    const page = await this.#readPage(filter, query, flows, request);
    if (page.events.length > 0 || page.unreadable !== null || request.cursor !== null) return page;
    return { ...page, unreadable: await findUnsearched(this.#core.store, filter) };
  }

  async #readPage(
    filter: EventFilter,
    { tenant = ONLY_TENANT, id, state }: EventQuery,
    flows: readonly string[],
    request: PageRequest,
  ): Promise<EventPage> {
    try {
      return await this.#listPage(filter, request);
    } catch (error) {
      if (id === undefined || state !== undefined || !isNotSearchable(error)) throw error;
      const names = filter.flow === undefined ? flows : [filter.flow];
      const keys = names.map((flow) => recordKeyFor(tenant, flow, id));
      return await this.#readRecordPage(filter, keys, request);
    }
  }

  async referenceHolder(eventId: string): Promise<StoredEvent | null> {
    const heldEvent = await this.get(eventId);
    if (heldEvent === null || heldEvent.reason !== "reference-reused" || heldEvent.referenceId === null)
      return null;
    const { tenant, flow, event, referenceId } = heldEvent;
    const claim = await this.#readRecord(claimKeyFor(tenant, flow, event, referenceId));
    if (claim === null) return null;
    const owner = await this.#readRecord(claim.id);
    if (owner === null) return null;
    const claimingLabels = indexOf(claim.id, owner).events.find(
      (labels) => labels.event === event && labels.status === "SUCCESS",
    );
    return claimingLabels === undefined ? null : eventIn(owner, claimingLabels.eventId);
  }

  async subjectOrder(eventId: string): Promise<SubjectOrder | null> {
    await this.#ready();
    return readSubjectOrder(this.#core.store, eventId);
  }

  async counts(): Promise<EventCounts> {
    await this.#ready();
    const { store } = this.#core;
    const { oldestDueAt, ...counts } = await store.counts();
    const { waiting, retrying, running, held } = counts;
    // Without an event, only a canary is due.
    const isDue = oldestDueAt !== null && waiting + retrying + running + held > 0;
    return { ...counts, oldestDueMs: isDue ? Math.max(0, store.now("") - oldestDueAt) : null };
  }

  async #readRecord(key: string): Promise<IdempotencyRecord | null> {
    const [versioned] = await this.#core.store.read([key]);
    return readableRecord(versioned);
  }

  async #listPage(
    filter: EventFilter,
    { limit, first, predicate, ...request }: PageRequest,
  ): Promise<EventPage> {
    let { cursor } = request;
    const events: StoredEvent[] = [];
    const unreadable = new UnreadableCounter();
    for (let pages = 0; pages < MAX_PAGES && events.length < limit; pages++) {
      const pageLimit = predicate === null ? limit - events.length : FILTERED_PAGE_SIZE;
      const page = await this.#core.store.list(filter, cursor, pageLimit, first);
      const rest = page.events.slice();
      for (let listedEvent = rest.shift(); listedEvent !== undefined; listedEvent = rest.shift()) {
        if (unreadable.countIfUnreadable(listedEvent.versioned)) continue;
        events.push(...storedEventsOf(listedEvent).filter(predicate ?? matchesAll));
        if (events.length === limit && rest.length > 0) return pageOf(events, listedEvent, unreadable);
      }
      cursor = page.next;
      if (cursor === null) break;
    }
    return pageOf(events, cursor, unreadable);
  }

  /**
   * Lists the events in the records of an id, for a store that does not search. It does not find entries with several readings.
   */
  async #readRecordPage(
    filter: EventFilter,
    keys: readonly string[],
    { limit, cursor, first, predicate }: PageRequest,
  ): Promise<EventPage> {
    const records = await this.#core.store.read(keys);
    const listing = new ListPageBuilder(filter, cursor, first);
    const unreadable = new UnreadableCounter();
    for (const [index, key] of keys.entries()) {
      const versioned = records[index] ?? null;
      if (versioned !== null && !unreadable.countIfUnreadable(versioned) && !isUnreadable(versioned.record))
        listing.add(versioned, indexOf(key, versioned.record).events);
    }
    const { events, next } = listing.page(limit);
    return pageOf(events.flatMap(storedEventsOf).filter(predicate ?? matchesAll), next, unreadable);
  }
}

/**
 * The store's filter for a query.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`
 */
export function filterOf(query: EventQuery): EventFilter {
  const {
    limit: _limit,
    cursor: _cursor,
    first: _first,
    amount: _amount,
    handler: _handler,
    state,
    ...filter
  } = checkQuery(query);
  const isNamed = filter.id !== undefined || filter.referenceId !== undefined;
  const tenantFilter = isNamed ? { ...filter, tenant: filter.tenant ?? ONLY_TENANT } : filter;
  const wantedState = state ?? (isNamed ? "any" : "unfinished");
  return { ...labelFilter(tenantFilter), ...(wantedState !== "unfinished" && { state: wantedState }) };
}

function matchesAll(): boolean {
  return true;
}

function pageOf(
  events: readonly StoredEvent[],
  next: ListCursor | null,
  unreadable: UnreadableCounter,
): EventPage {
  return { events, next: next === null ? null : cursorTextOf(next), unreadable: unreadable.events };
}

/** The event that a store has found. The store's list may still have the reference after the record has lost it. */
function storedEventsOf({ eventId, versioned, summary }: ListedEvent): readonly StoredEvent[] {
  const event = eventIn(readableRecord(versioned), eventId);
  return event === null ? [] : [{ ...event, referenceId: event.referenceId ?? summary?.referenceId ?? null }];
}

const QUERY_STATES: Readonly<Record<EventState | "unfinished", true>> = { ...EVENT_STATES, unfinished: true };

/** A value that no event can have would find nothing, and that would look like an answer. */
function checkQuery(query: EventQuery): EventQuery {
  checkNames("events.list", query, {
    state: true,
    flow: true,
    tenant: true,
    event: true,
    reason: true,
    referenceId: true,
    id: true,
    since: true,
    until: true,
    amount: true,
    handler: true,
    limit: true,
    cursor: true,
    first: true,
  });
  checkChoice("The state of events.list", query.state, QUERY_STATES);
  if (query.flow !== undefined && !isFlowName(query.flow)) {
    const fix = "It is payments, connect, or the name of a source.";
    throw invalidOptionError(`The flow of events.list is ${describeValue(query.flow)}.`, fix);
  }
  checkChoice("The reason of events.list", query.reason, HELD_REASONS);
  checkChoice("first", query.first, { oldest: true, newest: true });
  for (const name of ["since", "until"] as const) {
    const time = query[name];
    if (time === undefined || Number.isFinite(time)) continue;
    throw invalidOptionError(
      `${name} is ${stringOf(time)}.`,
      "Use milliseconds since the epoch, such as Date.now().",
    );
  }
  for (const name of ["id", "referenceId"] as const) {
    const text: unknown = query[name];
    if (text === undefined || (typeof text === "string" && text !== "")) continue;
    throw invalidOptionError(
      `The ${name} of events.list is ${text === "" ? "empty" : `a ${typeof text}`}.`,
      "Give a text, or leave it out.",
    );
  }
  const { limit } = query;
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)) {
    throw invalidOptionError(`limit is ${String(limit)}.`, `Use a whole number from 1 to ${MAX_LIMIT}.`);
  }
  return query;
}

/** The error for a search that would have to read everything in the store. */
export function notSearchableError(storeName: string): PayhooksError {
  return new PayhooksError(
    "ERR_NOT_SEARCHABLE",
    `${storeName} keeps no index of references and finished events.`,
    {
      fix: 'receiver.events.list({ referenceId, state: "unfinished" }) searches the events that are unfinished or held, and list({ id }) reads one record.',
    },
  );
}

/** The filter with its texts as labels, the form in which stores know them. */
function labelFilter(filter: EventFilter): EventFilter {
  const { tenant, event, referenceId, id } = filter;
  const texts = { tenant, event, referenceId, id };
  const labels = Object.entries(texts).map(([name, text]) => [
    name,
    text === undefined ? text : labelOf(text),
  ]);
  return { ...filter, ...Object.fromEntries(labels) };
}

function cursorTextOf({ acceptedAt, eventId }: ListCursor): string {
  return `${acceptedAt}-${eventId}`;
}

function parseCursor(text: string | null | undefined): ListCursor | null {
  if (text === null || text === undefined) return null;
  const [, acceptedAt, eventId] = /^(\d{1,16}(?:\.\d+)?)-([0-9a-f]{48})$/.exec(String(text)) ?? [];
  if (acceptedAt === undefined || eventId === undefined) {
    throw invalidOptionError(
      "The cursor does not come from a page of a list.",
      "Pass the `next` of the previous page.",
    );
  }
  return { acceptedAt: Number(acceptedAt), eventId };
}
