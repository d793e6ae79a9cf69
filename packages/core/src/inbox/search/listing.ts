import type { EventFilter } from "../contract/event-query.ts";
import type { ListCursor, ListedEvent, ListOrder, ListPage, VersionedRecord } from "../contract/store.ts";
import type { EventLabels } from "../record/index-of.ts";

/** Less than 0 if `a` is listed before `b`. */
function compareCursors(a: ListCursor, b: ListCursor): number {
  return a.acceptedAt - b.acceptedAt || (a.eventId < b.eventId ? -1 : a.eventId > b.eventId ? 1 : 0);
}

/** Gathers one page of a list from records that are given in any order. */
export class ListPageBuilder {
  readonly #filter: EventFilter;
  readonly #cursor: ListCursor | null;
  readonly #compare: typeof compareCursors;
  readonly #events: ListedEvent[] = [];

  constructor(filter: EventFilter, cursor: ListCursor | null, first: ListOrder) {
    this.#filter = filter;
    this.#cursor = cursor;
    this.#compare = first === "oldest" ? compareCursors : (a, b) => compareCursors(b, a);
  }

  add(versioned: VersionedRecord, events: readonly EventLabels[]): void {
    for (const event of events) {
      if (this.#cursor !== null && this.#compare(event, this.#cursor) <= 0) continue;
      if (!matchesFilter(event, this.#filter)) continue;
      const { eventId, acceptedAt } = event;
      this.#events.push({ eventId, acceptedAt, versioned });
    }
  }

  page(limit: number): ListPage {
    const events = this.#events.toSorted(this.#compare).slice(0, limit);
    const last = events.at(-1);
    const isLast = last === undefined || this.#events.length <= limit;
    return { events, next: isLast ? null : { acceptedAt: last.acceptedAt, eventId: last.eventId } };
  }
}

/** True if an event matches the filter. Finished events match only if the filter asks for `finished` or `any`. */
export function matchesFilter(event: EventLabels, filter: EventFilter): boolean {
  const { state, since, until } = filter;
  if (state === undefined ? event.state === "finished" : state !== "any" && event.state !== state)
    return false;
  for (const field of ["flow", "tenant", "event", "reason"] as const) {
    if (filter[field] !== undefined && filter[field] !== event[field]) return false;
  }
  for (const field of ["id", "referenceId"] as const) {
    const text = filter[field];
    if (text !== undefined && text !== event[field] && !event.foundBy.includes(text)) return false;
  }
  const { acceptedAt } = event;
  return (since === undefined || acceptedAt >= since) && (until === undefined || acceptedAt < until);
}
