import {
  type AnyReceiver,
  type EventQuery,
  PayhooksError,
  type StoredEvent,
  type UnreadableEvents,
} from "@payhooks/core";
import { addUnreadable, eachEvent, successesOfReference } from "@payhooks/core/events";
import type { DecisionKind, Outcomes, Preview } from "./answers.ts";
import { type ConsoleQuery, filterOf } from "./query.ts";
import { redactorOf } from "./redaction/redaction.ts";
import { decidableStateOf, decisionsOn } from "./views/list.ts";
import { type LeftAloneCounts, type PlannedEvent, plannedList } from "./views/planned-events.ts";

/** How many events one decision can be about. */
export const MAX_DECISION_EVENTS = 500;

/** How many finished events are looked at for those that were kept. */
const MAX_EVENTS_READ = 10_000;

/** How many events are read from the store at one time. */
const READ_BATCH_SIZE = 25;

/** Shows the events with these ids, or the oldest that a query lists, before a decision about them. */
export async function previewOf(
  receiver: AnyReceiver,
  decision: DecisionKind,
  which: readonly string[] | ConsoleQuery,
  redact: readonly string[],
): Promise<Preview> {
  const { entries, more, leftAlone, unreadable } = isIds(which)
    ? await readByIds(receiver, decision, which)
    : await readByQuery(receiver, decision, which);
  const leftAloneCount = Object.values(leftAlone).reduce((sum, count) => sum + count, 0);
  return {
    html: String(plannedList(entries, leftAlone, unreadable, decision, redactorOf(redact, receiver))),
    events: entries.map(({ eventId, reason, revision, runs }) => ({
      eventId,
      reason,
      revision,
      handlers: runs,
    })),
    gone: isIds(which) ? new Set(which).size - entries.length - leftAloneCount : 0,
    more,
  };
}

/** The events that a decision would be about. */
interface AffectedEvents {
  readonly entries: readonly PlannedEvent[];
  /** True if there are more. */
  readonly more: boolean;
  readonly leftAlone: LeftAloneCounts;
  /** The events of the list that are left out, because their records cannot be read; null if there are none. */
  readonly unreadable: UnreadableEvents | null;
}

/** All events of a list that cannot be read, as its pages report them. */
class UnreadableCounter {
  events: UnreadableEvents | null = null;

  readonly add = (page: UnreadableEvents): void => {
    this.events = addUnreadable(this.events, page);
  };
}

function isIds(which: readonly string[] | ConsoleQuery): which is readonly string[] {
  return Array.isArray(which);
}

async function readByIds(
  receiver: AnyReceiver,
  decision: DecisionKind,
  ids: readonly string[],
): Promise<AffectedEvents> {
  const entries: PlannedEvent[] = [];
  const finished: StoredEvent[] = [];
  for (const event of await eventsOf(receiver, ids)) {
    if (decision === "replay" && decidableStateOf(event) === "finished") {
      finished.push(event);
      continue;
    }
    const entry = await plannedOf(receiver, decision, event);
    if (entry !== null) entries.push(entry);
  }
  const again = await findReplayable(receiver, finished);
  return { ...again, entries: [...entries, ...again.entries], more: false, unreadable: null };
}

/** The events of these that can run again, after their end. A dry run says why the others cannot. */
async function findReplayable(
  receiver: AnyReceiver,
  finished: readonly StoredEvent[],
): Promise<Pick<AffectedEvents, "entries" | "leftAlone">> {
  const entries: PlannedEvent[] = [];
  const leftAlone: Record<string, number> = {};
  await receiver.events.replay(
    finished.map(({ eventId }) => eventId),
    {
      by: "preview",
      note: "preview",
      dryRun: true,
      perSecond: Number.POSITIVE_INFINITY,
      progress({ reason, outcome, event }) {
        if (outcome !== "decided" || event === null || event.revision === null || reason === null) {
          leftAlone[outcome] = (leftAlone[outcome] ?? 0) + 1;
        } else {
          const { revision } = event;
          entries.push({ ...event, reason, revision, sameReference: [], runs: receiver.handlersOf(event) });
        }
      },
    },
  );
  return { entries, leftAlone };
}

/** The event as a decision shows it; null if it is in no state for it. */
async function plannedOf(
  receiver: AnyReceiver,
  decision: DecisionKind,
  event: StoredEvent,
): Promise<PlannedEvent | null> {
  if (decision === "retry") {
    return event.state === "retrying"
      ? { ...event, reason: "retrying", revision: "", sameReference: [] }
      : null;
  }
  const { reason, revision } = event;
  if (reason === null || revision === null) return null;
  return { ...event, reason, revision, sameReference: await successesOfReference(receiver.events, event) };
}

async function readByQuery(
  receiver: AnyReceiver,
  decision: DecisionKind,
  query: ConsoleQuery,
): Promise<AffectedEvents> {
  const filter = filterOf(query);
  if (query.search !== null || !decisionsOn(query.state).includes(decision)) {
    const list = query.search === null ? `events that are ${query.state}` : "the results of a search";
    throw new PayhooksError("ERR_OPTION_INVALID", `A ${decision} cannot be about a list of ${list}.`, {
      fix: "Choose the events one by one, or list others.",
    });
  }
  if (query.state === "finished") return finishedIn(receiver, filter);
  const entries: PlannedEvent[] = [];
  const unreadable = new UnreadableCounter();
  let more = false;
  for await (const event of eachEvent(receiver.events, filter, unreadable.add)) {
    const entry = await plannedOf(receiver, decision, event);
    if (entry === null) continue;
    more = entries.length === MAX_DECISION_EVENTS;
    if (more) break;
    entries.push(entry);
  }
  return { entries, more, leftAlone: {}, unreadable: unreadable.events };
}

/** The oldest finished events of a list that were kept, because without that none can run again. */
async function finishedIn(receiver: AnyReceiver, filter: EventQuery): Promise<AffectedEvents> {
  const replayable: StoredEvent[] = [];
  let notKept = 0;
  let more = false;
  const unreadable = new UnreadableCounter();
  const events = eachEvent(receiver.events, { ...filter, limit: MAX_DECISION_EVENTS }, unreadable.add);
  for await (const event of events) {
    more = replayable.length === MAX_DECISION_EVENTS || replayable.length + notKept === MAX_EVENTS_READ;
    if (more) break;
    if (event.revision === null) notKept++;
    else replayable.push(event);
  }
  const { entries, leftAlone } = await findReplayable(receiver, replayable);
  const leftAloneCounts = notKept === 0 ? leftAlone : { ...leftAlone, "not-kept": notKept };
  return { entries, more, leftAlone: leftAloneCounts, unreadable: unreadable.events };
}

/** The outcome for each event. An event that is held after a replay was held again. */
export async function outcomesOf(receiver: AnyReceiver, ids: readonly string[]): Promise<Outcomes> {
  const events = await eventsOf(receiver, ids);
  return { states: Object.fromEntries(events.map(({ eventId, state }) => [eventId, state])) };
}

async function eventsOf(receiver: AnyReceiver, ids: readonly string[]): Promise<readonly StoredEvent[]> {
  const unique = [...new Set(ids)];
  const events: StoredEvent[] = [];
  for (let i = 0; i < unique.length; i += READ_BATCH_SIZE) {
    const batchEvents = await Promise.all(
      unique.slice(i, i + READ_BATCH_SIZE).map((eventId) => receiver.events.get(eventId)),
    );
    events.push(...batchEvents.filter((event) => event !== null));
  }
  return events;
}
