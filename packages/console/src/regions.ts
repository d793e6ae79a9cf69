import {
  type AnyReceiver,
  type EventPage,
  type EventQuery,
  isPayhooksError,
  type StoredEvent,
} from "@payhooks/core";
import { successesOfReference } from "@payhooks/core/events";
import type { Activity } from "./activity/activity.ts";
import { isPermitted } from "./guard.ts";
import type { ConsoleUser } from "./options.ts";
import { problemOf } from "./problem.ts";
import { type ConsoleQuery, filterOf, flowsOf, isEventId } from "./query.ts";
import { redactorOf } from "./redaction/redaction.ts";
import { activityCard } from "./views/chart.ts";
import { countTiles, reasonLinks } from "./views/counts.ts";
import { eventCards, missingEvent } from "./views/event-page.ts";
import { healthNotes } from "./views/health.ts";
import { eventsCard } from "./views/list.ts";
import { logCard } from "./views/log.ts";
import type { Regions } from "./views/page.ts";
import { unreadableInWords } from "./views/unreadable.ts";
import { WATCH_LEASE, watchLine } from "./views/watch.ts";

const PAGE_SIZE = 50;
/** The largest page of a list that is looked through, but not shown. */
const MAX_PAGE_SIZE = 1_000;

/** Everything that an answer depends on. */
export interface PageRequest {
  readonly receiver: AnyReceiver;
  readonly activity: Activity;
  readonly user: ConsoleUser;
  readonly query: ConsoleQuery;
  readonly redact: readonly string[];
}

/** The parts of the page that a query asks for. If the inbox does not answer, they are empty and `problem` says why. */
export async function regionsOf(request: PageRequest): Promise<{
  readonly regions: Regions;
  readonly problem: string | null;
  readonly status: 200 | 400 | 404 | 503;
}> {
  const { receiver, activity, user, query, redact } = request;
  const redactor = redactorOf(redact, receiver);
  const problems = new Problems();
  const rights = (["replay", "discard"] as const).filter((right) => isPermitted(user, right));
  const [counts, health] = await Promise.all([
    problems.orElse(receiver.events.counts(), null),
    problems.orElse(receiver.health(), null),
  ]);
  const always = { counts: countTiles(counts, query), health: healthNotes(health, receiver.live().ok) };
  if (query.eventId !== null) {
    const problemsOfRead = new Problems();
    const event = await problemsOfRead.orElse(receiver.events.get(query.eventId), null);
    problems.add(problemsOfRead);
    const [successes, order] =
      event === null
        ? [null, null]
        : await Promise.all([
            problems.orElse(successesOfReference(receiver.events, event), null),
            problems.orElse(receiver.events.subjectOrder(event.eventId), null),
          ]);
    const cards =
      event === null
        ? missingEvent(query, problemsOfRead.text === null)
        : eventCards({
            query,
            event,
            successes,
            order,
            redactor,
            rights,
          });
    const status = problems.text === null && event === null ? 404 : problems.status;
    return { regions: { ...always, eventPage: cards }, problem: problems.text, status };
  }
  const [list, watching] = await Promise.all([
    readList(request, problems),
    problems.orElse(receiver.viewLease(WATCH_LEASE), null),
  ]);
  const regions = {
    ...always,
    reasons: reasonLinks(counts, query),
    events: eventsCard({ query, ...list, isRefused: problems.status === 400, redactor, rights }),
    activity: activityCard(activity, query, Date.now()),
    log: logCard(activity, query, redactor, watchLine(watching)),
  };
  return { regions, problem: problems.text, status: problems.status };
}

interface ListPart {
  /** Null if the inbox did not answer. */
  readonly events: readonly StoredEvent[] | null;
  readonly next: string | null;
  /** The events that were not looked through, or cannot be read, in words; null if there are none. */
  readonly unsearched: string | null;
}

async function readList({ receiver, query }: PageRequest, problems: Problems): Promise<ListPart> {
  const { search, cursor, tenant } = query;
  if (search !== null) return findByText(receiver, search, tenant ?? undefined, problems);
  const readPage = async (): Promise<EventPage> =>
    receiver.events.list({ ...filterOf(query), limit: PAGE_SIZE, cursor, first: "newest" });
  const page = await problems.orElse(readPage(), { events: null, next: null, unreadable: null });
  const unreadable = unreadableInWords(page.unreadable);
  if (unreadable !== null) problems.note(unreadable);
  return { events: page.events, next: page.next, unsearched: unreadable };
}

/** All events that have a text as one of their ids. The person who searches need not know which kind of id it is. */
async function findByText(
  receiver: AnyReceiver,
  text: string,
  tenant: string | undefined,
  problems: Problems,
): Promise<ListPart> {
  const unsearched = new Set<string>();
  const searchBy = (query: EventQuery): Promise<readonly StoredEvent[] | null> =>
    problems.orElse(searchEvents(receiver, { ...query, tenant }, unsearched), null);
  const answers = await Promise.all([
    ...flowsOf(receiver).map((flow) => searchBy({ id: text, flow })),
    searchBy({ referenceId: text }),
    isEventId(text) ? problems.orElse(findByEventId(receiver, text), null) : [],
  ]);
  const events = answers.flatMap((answer) => answer ?? []);
  const eventsById = new Map(events.map((event) => [event.eventId, event]));
  const isUnknown = eventsById.size === 0 && answers.includes(null);
  return {
    events: isUnknown ? null : [...eventsById.values()].toSorted((a, b) => b.acceptedAt - a.acceptedAt),
    next: null,
    unsearched: unsearched.size === 0 ? null : [...unsearched].join(" "),
  };
}

/** How many pages of unfinished events are looked through where the inbox cannot search. */
const MAX_PAGES = 20;

/**
 * The events of one id or reference, which belongs to a tenant: if there are several and none is given, none is looked through.
 * In an inbox that cannot search for references, it searches the unfinished and held events.
 */
async function searchEvents(
  receiver: AnyReceiver,
  query: EventQuery,
  unsearched: Set<string>,
): Promise<readonly StoredEvent[]> {
  try {
    const { events, unreadable } = await receiver.events.list({ ...query, limit: MAX_PAGE_SIZE });
    const words = unreadableInWords(unreadable);
    if (words !== null) unsearched.add(words);
    return events;
  } catch (error) {
    if (isPayhooksError(error) && error.code === "ERR_OPTION_MISSING") {
      unsearched.add("An id or a reference is found together with its tenant: name the tenant.");
      return [];
    }
    if (!isPayhooksError(error) || error.code !== "ERR_NOT_SEARCHABLE") throw error;
  }
  unsearched.add("Finished events were not looked through: this inbox does not search for references.");
  const events: StoredEvent[] = [];
  const unfinished = { ...query, state: "unfinished", limit: MAX_PAGE_SIZE } as const;
  let cursor: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page: EventPage = await receiver.events.list({ ...unfinished, cursor });
    events.push(...page.events);
    const words = unreadableInWords(page.unreadable);
    if (words !== null) unsearched.add(words);
    cursor = page.next;
    if (cursor === null) return events;
  }
  unsearched.add("There are too many unfinished events to look through all of them.");
  return events;
}

async function findByEventId(receiver: AnyReceiver, eventId: string): Promise<readonly StoredEvent[]> {
  const event = await receiver.events.get(eventId);
  return event === null ? [] : [event];
}

/** Collects what went wrong. Only the first message is kept, and it may be shown. */
class Problems {
  text: string | null = null;
  /** The status of the page. */
  status: 200 | 400 | 503 = 200;

  /** Something that people should know, though the inbox has answered. */
  note(text: string): void {
    this.text ??= text;
  }

  /** Takes over what went wrong elsewhere. */
  add({ text, status }: Problems): void {
    this.text ??= text;
    if (status > this.status) this.status = status;
  }

  /** Resolves with the answer, or with a substitute if an error of Payhooks prevented it. */
  async orElse<Answer, Otherwise>(
    promise: Promise<Answer>,
    otherwise: Otherwise,
  ): Promise<Answer | Otherwise> {
    try {
      return await promise;
    } catch (error) {
      const problem = problemOf(error);
      if (problem === null) throw error;
      const { status, code, message } = problem;
      this.text ??= status === 400 ? `${message} (${code})` : message;
      // An inbox that cannot search has not failed: the page says what to do about it, and shows the rest.
      if (code !== "ERR_NOT_SEARCHABLE" && status > this.status) this.status = status;
      return otherwise;
    }
  }
}
