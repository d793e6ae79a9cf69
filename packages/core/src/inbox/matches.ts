import type { EventFilter } from "./event-query.ts";
import type { EventLabels } from "./record/index-of.ts";

/** True if an event matches the filter. Finished events match only if the filter asks for `finished` or `any`. */
export function matches(event: EventLabels, filter: EventFilter): boolean {
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
