import { type AnyReceiver, PayhooksError, type StoredEvent } from "@payhooks/core";
import { eachEvent, successesOfReference } from "@payhooks/core/inbox";
import type { Decision, Outcomes, Preview } from "./answers.ts";
import { type ConsoleQuery, filterOf } from "./query.ts";
import { decisionsOn } from "./views/list.ts";
import { type Planned, planned } from "./views/planned.ts";

/** How many events one decision can be about. */
export const MAX_EVENTS = 500;

/** How many events are read from the store at one time. */
const AT_ONCE = 25;

/** Shows the events with these ids, or the oldest that a query lists, before somebody decides about them. */
export async function previewOf(
  receiver: AnyReceiver,
  decision: Decision,
  of: readonly string[] | ConsoleQuery,
  redact: readonly string[],
): Promise<Preview> {
  const { entries, more } = isIds(of)
    ? { entries: await named(receiver, decision, of), more: false }
    : await listed(receiver, decision, of);
  return {
    html: String(planned(entries, decision, redact, (delivery) => receiver.contents(delivery))),
    events: entries.map(({ eventId, reason, revision }) => ({ eventId, reason, revision })),
    gone: isIds(of) ? new Set(of).size - entries.length : 0,
    more,
  };
}

function isIds(of: readonly string[] | ConsoleQuery): of is readonly string[] {
  return Array.isArray(of);
}

async function named(
  receiver: AnyReceiver,
  decision: Decision,
  ids: readonly string[],
): Promise<readonly Planned[]> {
  const entries: Planned[] = [];
  for (const life of await livesOf(receiver, ids)) {
    const entry = await plannedOf(receiver, decision, life);
    if (entry !== null) entries.push(entry);
  }
  return entries;
}

/** The event as a decision shows it; null if it is in no state for it. */
async function plannedOf(
  receiver: AnyReceiver,
  decision: Decision,
  event: StoredEvent,
): Promise<Planned | null> {
  if (decision === "retry") {
    return event.state === "retrying"
      ? { ...event, reason: "retrying", revision: "", sameReference: [] }
      : null;
  }
  const { reason, revision } = event;
  if (reason === null || revision === null) return null;
  return { ...event, reason, revision, sameReference: await successesOfReference(receiver.events, event) };
}

async function listed(
  receiver: AnyReceiver,
  decision: Decision,
  query: ConsoleQuery,
): Promise<{ readonly entries: readonly Planned[]; readonly more: boolean }> {
  const filter = filterOf(query);
  if (query.search !== null || !decisionsOn(query.state).includes(decision)) {
    const list = query.search === null ? `events that are ${query.state}` : "the results of a search";
    throw new PayhooksError("ERR_OPTION_INVALID", `A ${decision} cannot be about a list of ${list}.`, {
      fix: "Choose the events one by one, or list others.",
    });
  }
  const entries: Planned[] = [];
  for await (const event of eachEvent(receiver.events, filter)) {
    const entry = await plannedOf(receiver, decision, event);
    if (entry === null) continue;
    if (entries.length === MAX_EVENTS) return { entries, more: true };
    entries.push(entry);
  }
  return { entries, more: false };
}

/** The outcome for each event. An event that is held after a replay was held again. */
export async function outcomesOf(receiver: AnyReceiver, ids: readonly string[]): Promise<Outcomes> {
  const lives = await livesOf(receiver, ids);
  return { states: Object.fromEntries(lives.map(({ eventId, state }) => [eventId, state])) };
}

async function livesOf(receiver: AnyReceiver, ids: readonly string[]): Promise<readonly StoredEvent[]> {
  const unique = [...new Set(ids)];
  const lives: StoredEvent[] = [];
  for (let i = 0; i < unique.length; i += AT_ONCE) {
    const read = await Promise.all(
      unique.slice(i, i + AT_ONCE).map((eventId) => receiver.events.get(eventId)),
    );
    lives.push(...read.filter((life) => life !== null));
  }
  return lives;
}
