import { checkChoice, checkNames } from "../protocol/check-names.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { FLOWS } from "../protocol/events.ts";
import { HELD_REASONS } from "../protocol/held-reasons.ts";
import type { EventEntries, EventFilter, EventPage, FindQuery, ListOptions } from "./events.ts";
import type { InboxParts } from "./parts.ts";
import { isUnreadable } from "./record/codec.ts";
import { recordKeyOf } from "./record/event.ts";
import { EVENT_STATES, type EventLabels, type EventSummary, indexOf } from "./record/index-of.ts";
import { ONLY_TENANT, recordKeyFor } from "./record/keys.ts";
import { label } from "./record/label.ts";
import type { ListCursor, ListedEvent } from "./store.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
/** How many pages of the store one call reads at most. A filter that few events match would make the call long otherwise. */
const MAX_LOOKS = 20;

/** Finds and lists the events of a store. */
export class Finding implements EventEntries {
  readonly #parts: InboxParts;
  readonly #ready: () => Promise<void>;

  constructor(parts: InboxParts, ready: () => Promise<void>) {
    this.#parts = parts;
    this.#ready = ready;
  }

  async find(query: FindQuery): Promise<readonly EventSummary[]> {
    const wanted = wantedOf(query);
    await this.#ready();
    const found = new Map<string, EventSummary>();
    const take = (event: EventSummary): void => {
      const { flow = event.flow, tenant = event.tenant } = wanted;
      if (event.flow === flow && event.tenant === label(tenant)) found.set(event.eventId, event);
    };
    for (const event of await this.#search(wanted)) take(event);
    if (wanted.by === "id") for (const event of await this.#ofRecord(wanted)) take(event);
    return [...found.values()].toSorted(byTime);
  }

  /**
   * If the store cannot search, a search by id finds nothing here, and the record of the id is read instead. Only entries with
   * several readings are missing from that answer.
   */
  async #search({ text, by }: Wanted): Promise<readonly EventSummary[]> {
    const { store } = this.#parts;
    try {
      if (store.find === undefined) throw notSearchable("This inbox");
      return summariesOf(await store.find(label(text)));
    } catch (error) {
      if (by === "id" && isPayhooksError(error) && error.code === "ERR_NOT_SEARCHABLE") return [];
      throw error;
    }
  }

  async #ofRecord({ flow, tenant, text }: Wanted & { readonly by: "id" }): Promise<readonly EventSummary[]> {
    const key = recordKeyFor(tenant ?? ONLY_TENANT, flow, text);
    const [found = null] = await this.#parts.store.read([key]);
    return found === null || isUnreadable(found.record) ? [] : indexOf(key, found.record).events.map(plain);
  }

  async list(filter: EventFilter = {}, options: ListOptions = {}): Promise<EventPage> {
    checkFilter(filter);
    checkNames("A page of events.list", options, { limit: true, cursor: true, first: true });
    const { limit = DEFAULT_LIMIT, first = "oldest" } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
      throw invalid(`limit is ${String(limit)}.`, `Use a whole number from 1 to ${MAX_LIMIT}.`);
    }
    checkChoice("first", first, { oldest: true, newest: true });
    const wanted = labelled(filter);
    let cursor = cursorOf(options.cursor);
    await this.#ready();
    const events: EventSummary[] = [];
    for (let looks = 0; looks < MAX_LOOKS && events.length < limit; looks++) {
      const page = await this.#parts.store.list(wanted, cursor, limit - events.length, first);
      events.push(...summariesOf(page.events));
      cursor = page.next;
      if (cursor === null) break;
    }
    return { events, next: cursor === null ? null : textOf(cursor) };
  }

  async counts(): ReturnType<EventEntries["counts"]> {
    await this.#ready();
    const { store } = this.#parts;
    const { oldestDueAt, ...counts } = await store.counts();
    const { waiting, retrying, running, held } = counts;
    // Without an event, only a canary is due.
    const isDue = oldestDueAt !== null && waiting + retrying + running + held > 0;
    return { ...counts, oldestDueMs: isDue ? Math.max(0, store.now("") - oldestDueAt) : null };
  }
}

/** A value that no event can have would find nothing, and look like an answer. */
function checkFilter(filter: EventFilter): void {
  checkNames("events.list", filter, {
    state: true,
    flow: true,
    tenant: true,
    event: true,
    reason: true,
    referenceId: true,
    id: true,
    since: true,
    until: true,
  });
  checkChoice("The state of events.list", filter.state, EVENT_STATES);
  checkChoice("The flow of events.list", filter.flow, FLOWS);
  checkChoice("The reason of events.list", filter.reason, HELD_REASONS);
  for (const name of ["since", "until"] as const) {
    const time = filter[name];
    if (time === undefined || Number.isFinite(time)) continue;
    throw invalid(`${name} is ${String(time)}.`, "Use milliseconds since the epoch, such as Date.now().");
  }
}

/** What a query asks for. */
type Wanted = { readonly tenant: string | undefined; readonly text: string } & (
  | { readonly by: "reference"; readonly flow: "payments" }
  | { readonly by: "id"; readonly flow: "payments" | "connect" }
);

function wantedOf(query: FindQuery): Wanted {
  checkNames("find", query, { payTxnId: true, idempotencyKey: true, referenceId: true, tenant: true });
  const { payTxnId, idempotencyKey, referenceId, tenant } = query;
  const given = [payTxnId, idempotencyKey, referenceId].filter((one) => one !== undefined);
  const [text] = given;
  if (given.length !== 1 || typeof text !== "string" || text === "") {
    throw invalid(
      "find looks for exactly one thing, and was given none or several.",
      "Give it one of { payTxnId }, { idempotencyKey } and { referenceId }, as a string that is not empty.",
    );
  }
  if (referenceId !== undefined) return { by: "reference", flow: "payments", text, tenant };
  return { by: "id", flow: payTxnId === undefined ? "connect" : "payments", text, tenant };
}

function byTime(a: EventSummary, b: EventSummary): number {
  return a.acceptedAt - b.acceptedAt || (a.eventId < b.eventId ? -1 : 1);
}

/** The summary of an event, without the texts that it can be found by. */
function plain({ foundBy: _, ...summary }: EventLabels): EventSummary {
  return summary;
}

function summariesOf(events: readonly ListedEvent[]): readonly EventSummary[] {
  return events.flatMap(({ eventId, versioned: { record }, summary }) => {
    if (summary !== undefined) return [summary];
    if (isUnreadable(record)) return [];
    const labels = indexOf(recordKeyOf(eventId), record).events;
    return labels.filter((event) => event.eventId === eventId).map(plain);
  });
}

/** The error for a search that would have to read everything in the store. */
export function notSearchable(what: string): PayhooksError {
  return new PayhooksError(
    "ERR_NOT_SEARCHABLE",
    `${what} keeps no index of references and finished events.`,
    {
      fix: "receiver.events.list({ referenceId }) searches the events that are unfinished or held, and find({ payTxnId }) reads one record.",
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

function textOf({ acceptedAt, eventId }: ListCursor): string {
  return `${acceptedAt}-${eventId}`;
}

function cursorOf(text: string | null | undefined): ListCursor | null {
  if (text === null || text === undefined) return null;
  const [, acceptedAt, eventId] = /^(\d{1,16}(?:\.\d+)?)-([0-9a-f]{48})$/.exec(String(text)) ?? [];
  if (acceptedAt === undefined || eventId === undefined) {
    throw invalid("The cursor does not come from a page of a list.", "Pass the `next` of the previous page.");
  }
  return { acceptedAt: Number(acceptedAt), eventId };
}

function invalid(what: string, fix: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_INVALID", what, { fix });
}
