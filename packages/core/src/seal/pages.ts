import type { ListCursor, ListedEvent, ListOrder, ListPage } from "../inbox/contract/store.ts";

/** One page of several lists together. An event that is in several of them comes once. */
export function mergePages(pages: readonly ListPage[], limit: number, first: ListOrder): ListPage {
  const [only] = pages;
  if (only !== undefined && pages.length === 1) return only;
  const isBehind = (a: ListCursor, b: ListCursor): boolean => {
    const difference =
      a.acceptedAt - b.acceptedAt || (a.eventId < b.eventId ? -1 : a.eventId > b.eventId ? 1 : 0);
    return first === "oldest" ? difference > 0 : difference < 0;
  };
  /** Behind this event, one of the lists may have more. */
  let lastCertain: ListCursor | null = null;
  for (const { next } of pages) {
    if (next !== null && (lastCertain === null || isBehind(lastCertain, next))) lastCertain = next;
  }
  const eventsById = new Map<string, ListedEvent>();
  for (const event of pages.flatMap(({ events }) => events)) {
    if (lastCertain === null || !isBehind(event, lastCertain)) eventsById.set(event.eventId, event);
  }
  const events = [...eventsById.values()].sort((a, b) => (isBehind(a, b) ? 1 : isBehind(b, a) ? -1 : 0));
  const last = events[limit - 1];
  if (last === undefined || events.length === limit) return { events, next: lastCertain };
  return { events: events.slice(0, limit), next: { acceptedAt: last.acceptedAt, eventId: last.eventId } };
}
