import { checkChoice, checkNames } from "../../protocol/check-names.ts";
import { invalidOption, isNotSearchable, PayhooksError } from "../../protocol/errors.ts";
import { FLOWS, isFlowName } from "../../protocol/events.ts";
import { shown, stringOf } from "../../protocol/foreign-value.ts";
import { HELD_REASONS } from "../../protocol/held-reasons.ts";
import type { EventFilter, EventQuery } from "../contract/event-query.ts";
import type { EventCounts, EventPage } from "../contract/events.ts";
import type { SubjectOrder } from "../contract/order.ts";
import type { ListCursor, ListedEvent, ListOrder } from "../contract/store.ts";
import { isUnreadable } from "../record/codec.ts";
import { eventIn } from "../record/decisions.ts";
import { isEventId, recordKeyOf } from "../record/event.ts";
import { EVENT_STATES, type EventState, indexOf } from "../record/index-of.ts";
import { claimKeyFor, ONLY_TENANT, recordKeyFor } from "../record/keys.ts";
import { label } from "../record/label.ts";
import type { StoredEvent } from "../record/life.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { unreadableError } from "../write/records.ts";
import { type EventPredicate, predicateOf } from "./event-predicate.ts";
import { Listing } from "./listing.ts";
import { orderOf } from "./read-order.ts";
import { UnreadableCounter, unsearched } from "./unreadable.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
/**
 * How many pages of the store one call reads at most. Without this limit, a filter that few events match would make a call long.
 */
const MAX_PAGES = 20;
/** How many events are read from the store at one time when a filter has no index. */
const CHOSEN_FROM = 200;

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
    const [found = null] = await this.#core.store.read([recordKeyOf(eventId)]);
    if (found === null) return null;
    if (isUnreadable(found.record)) throw unreadableError(found.record);
    return eventIn(found.record, eventId);
  }

  async list(query: EventQuery = {}): Promise<EventPage> {
    const { limit = DEFAULT_LIMIT, cursor, first = "oldest" } = checked(query);
    const request: PageRequest = { limit, cursor: cursorOf(cursor), first, predicate: predicateOf(query) };
    const filter = filterOf(query);
    await this.#ready();
    const page = await this.#page(filter, query, request);
    if (page.events.length > 0 || page.unreadable !== null || request.cursor !== null) return page;
    return { ...page, unreadable: await unsearched(this.#core.store, filter) };
  }

  async #page(
    filter: EventFilter,
    { tenant = ONLY_TENANT, id, state }: EventQuery,
    request: PageRequest,
  ): Promise<EventPage> {
    try {
      return await this.#listed(filter, request);
    } catch (error) {
      if (id === undefined || state !== undefined || !isNotSearchable(error)) throw error;
      return await this.#ofRecord(filter, tenant, id, request);
    }
  }

  async claimant(eventId: string): Promise<StoredEvent | null> {
    const held = await this.get(eventId);
    if (held === null || held.reason !== "reference-reused" || held.referenceId === null) return null;
    const { tenant, flow, event, referenceId } = held;
    const claim = await this.#record(claimKeyFor(tenant, flow, event, referenceId));
    if (claim === null) return null;
    const owner = await this.#record(claim.id);
    if (owner === null) return null;
    const claiming = indexOf(claim.id, owner).events.find(
      (one) => one.event === event && one.status === "SUCCESS",
    );
    return claiming === undefined ? null : eventIn(owner, claiming.eventId);
  }

  async order(eventId: string): Promise<SubjectOrder | null> {
    await this.#ready();
    const { store } = this.#core;
    const read = async (keys: readonly string[]): Promise<readonly (IdempotencyRecord | null)[]> =>
      (await store.read(keys)).map((found) =>
        found !== null && !isUnreadable(found.record) ? found.record : null,
      );
    return orderOf(store, read, eventId);
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

  async #record(key: string): Promise<IdempotencyRecord | null> {
    const [found = null] = await this.#core.store.read([key]);
    return found === null || isUnreadable(found.record) ? null : found.record;
  }

  async #listed(
    filter: EventFilter,
    { limit, first, predicate, ...request }: PageRequest,
  ): Promise<EventPage> {
    let { cursor } = request;
    const events: StoredEvent[] = [];
    const unreadable = new UnreadableCounter();
    for (let pages = 0; pages < MAX_PAGES && events.length < limit; pages++) {
      const most = predicate === null ? limit - events.length : CHOSEN_FROM;
      const page = await this.#core.store.list(filter, cursor, most, first);
      const rest = page.events.slice();
      for (let one = rest.shift(); one !== undefined; one = rest.shift()) {
        if (unreadable.countIfUnreadable(one.versioned)) continue;
        events.push(...storedEvent(one).filter(predicate ?? all));
        if (events.length === limit && rest.length > 0) return pageOf(events, one, unreadable);
      }
      cursor = page.next;
      if (cursor === null) break;
    }
    return pageOf(events, cursor, unreadable);
  }

  /**
   * Lists the events in the record of an id, for a store that does not search. It does not find entries with several readings.
   */
  async #ofRecord(
    filter: EventFilter,
    tenant: string,
    id: string,
    { limit, cursor, first, predicate }: PageRequest,
  ): Promise<EventPage> {
    const keys = flowsOf(filter).map((flow) => recordKeyFor(tenant, flow, id));
    const records = await this.#core.store.read(keys);
    const listing = new Listing(filter, cursor, first);
    const unreadable = new UnreadableCounter();
    for (const [at, key] of keys.entries()) {
      const found = records[at] ?? null;
      if (found !== null && !unreadable.countIfUnreadable(found) && !isUnreadable(found.record))
        listing.add(found, indexOf(key, found.record).events);
    }
    const { events, next } = listing.page(limit);
    return pageOf(events.flatMap(storedEvent).filter(predicate ?? all), next, unreadable);
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
    ...wanted
  } = checked(query);
  const isNamed = wanted.id !== undefined || wanted.referenceId !== undefined;
  const named = isNamed ? { ...wanted, tenant: wanted.tenant ?? ONLY_TENANT } : wanted;
  const wantedState = state ?? (isNamed ? "any" : "unfinished");
  return { ...labelled(named), ...(wantedState !== "unfinished" && { state: wantedState }) };
}

function all(): boolean {
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
function storedEvent({ eventId, versioned: { record }, summary }: ListedEvent): readonly StoredEvent[] {
  const event = isUnreadable(record) ? null : eventIn(record, eventId);
  return event === null ? [] : [{ ...event, referenceId: event.referenceId ?? summary?.referenceId ?? null }];
}

function flowsOf({ flow }: EventFilter): readonly NonNullable<EventFilter["flow"]>[] {
  return flow === undefined ? Object.keys(FLOWS) : [flow];
}

const STATES: Readonly<Record<EventState | "unfinished", true>> = { ...EVENT_STATES, unfinished: true };

/** A value that no event can have would find nothing, and that would look like an answer. */
function checked(query: EventQuery): EventQuery {
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
  checkChoice("The state of events.list", query.state, STATES);
  if (query.flow !== undefined && !isFlowName(query.flow)) {
    const fix = "It is payments, connect, or the name of a source.";
    throw invalidOption(`The flow of events.list is ${shown(query.flow)}.`, fix);
  }
  checkChoice("The reason of events.list", query.reason, HELD_REASONS);
  checkChoice("first", query.first, { oldest: true, newest: true });
  for (const name of ["since", "until"] as const) {
    const time = query[name];
    if (time === undefined || Number.isFinite(time)) continue;
    throw invalidOption(
      `${name} is ${stringOf(time)}.`,
      "Use milliseconds since the epoch, such as Date.now().",
    );
  }
  for (const name of ["id", "referenceId"] as const) {
    const text: unknown = query[name];
    if (text === undefined || (typeof text === "string" && text !== "")) continue;
    throw invalidOption(
      `The ${name} of events.list is ${text === "" ? "empty" : `a ${typeof text}`}.`,
      "Give a text, or leave it out.",
    );
  }
  const { limit } = query;
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)) {
    throw invalidOption(`limit is ${String(limit)}.`, `Use a whole number from 1 to ${MAX_LIMIT}.`);
  }
  return query;
}

/** The error for a search that would have to read everything in the store. */
export function notSearchable(what: string): PayhooksError {
  return new PayhooksError(
    "ERR_NOT_SEARCHABLE",
    `${what} keeps no index of references and finished events.`,
    {
      fix: 'receiver.events.list({ referenceId, state: "unfinished" }) searches the events that are unfinished or held, and list({ id }) reads one record.',
    },
  );
}

/** The filter with its texts as labels, the form in which stores know them. */
function labelled(filter: EventFilter): EventFilter {
  const { tenant, event, referenceId, id } = filter;
  const texts = { tenant, event, referenceId, id };
  const labels = Object.entries(texts).map(([name, text]) => [name, text === undefined ? text : label(text)]);
  return { ...filter, ...Object.fromEntries(labels) };
}

function cursorTextOf({ acceptedAt, eventId }: ListCursor): string {
  return `${acceptedAt}-${eventId}`;
}

function cursorOf(text: string | null | undefined): ListCursor | null {
  if (text === null || text === undefined) return null;
  const [, acceptedAt, eventId] = /^(\d{1,16}(?:\.\d+)?)-([0-9a-f]{48})$/.exec(String(text)) ?? [];
  if (acceptedAt === undefined || eventId === undefined) {
    throw invalidOption(
      "The cursor does not come from a page of a list.",
      "Pass the `next` of the previous page.",
    );
  }
  return { acceptedAt: Number(acceptedAt), eventId };
}
