import { type EventPage, type EventSummary, isPayhooksError, type Receiver } from "@payhooks/core";
import { successesOfReference } from "@payhooks/core/inbox";
import type { Activity } from "./activity/activity.ts";
import { may } from "./guard.ts";
import type { ConsoleUser } from "./options.ts";
import { type ConsoleQuery, filterOf, isEventId } from "./query.ts";
import { activityCard } from "./views/chart.ts";
import { countTiles, reasonLinks } from "./views/counts.ts";
import { healthNotes } from "./views/health.ts";
import { lifeCards, noLife } from "./views/life.ts";
import { type Decision, eventsCard } from "./views/list.ts";
import { logCard } from "./views/log.ts";
import type { Regions } from "./views/page.ts";

const PAGE_SIZE = 50;
/** The largest page of a list that is looked through, but not shown. */
const MOST_PER_PAGE = 1_000;

/** Everything that an answer depends on. */
export interface PageRequest {
  readonly receiver: Receiver;
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
  const problems = new Problems();
  const rights = (["replay", "discard"] as const).filter((right): right is Decision => may(user, right));
  const [counts, health] = await Promise.all([
    problems.orElse(receiver.events.counts(), null),
    problems.orElse(receiver.health(), null),
  ]);
  const always = { counts: countTiles(counts, query), health: healthNotes(health, receiver.live().ok) };
  if (query.eventId !== null) {
    const problemsOfRead = new Problems();
    const life = await problemsOfRead.orElse(receiver.read(query.eventId), null);
    problems.add(problemsOfRead);
    const successes = life && (await problems.orElse(successesOfReference(receiver, life), null));
    const cards =
      life === null
        ? noLife(query, problemsOfRead.text === null)
        : lifeCards({ query, life, successes, redact, rights });
    const status = problems.text === null && life === null ? 404 : problems.status;
    return { regions: { ...always, life: cards }, problem: problems.text, status };
  }
  const list = await listed(request, problems);
  const regions = {
    ...always,
    reasons: reasonLinks(counts, query),
    events: eventsCard({ query, ...list, redact, rights }),
    activity: activityCard(activity, query, Date.now()),
    log: logCard(activity, query, redact),
  };
  return { regions, problem: problems.text, status: problems.status };
}

interface Listed {
  /** Null if the inbox did not answer. */
  readonly events: readonly EventSummary[] | null;
  readonly next: string | null;
  /** Which events a search has not looked through, in words; null if it has looked through all. */
  readonly unsearched: string | null;
}

async function listed({ receiver, query }: PageRequest, problems: Problems): Promise<Listed> {
  const { search, cursor, tenant } = query;
  if (search !== null) return found(receiver, search, tenant ?? undefined, problems);
  const page = receiver.events.list(filterOf(query), { limit: PAGE_SIZE, cursor, first: "newest" });
  return { ...(await problems.orElse(page, { events: null, next: null })), unsearched: null };
}

/** All events that have a text as one of their ids. The person who searches need not know which kind of id it is. */
async function found(
  receiver: Receiver,
  text: string,
  tenant: string | undefined,
  problems: Problems,
): Promise<Listed> {
  const unsearched = new Set<string>();
  const answers = await Promise.all([
    ofId(receiver.find({ payTxnId: text, tenant }), problems, unsearched),
    ofId(receiver.find({ idempotencyKey: text, tenant }), problems, unsearched),
    ofReference(receiver, text, tenant, problems, unsearched),
    isEventId(text) ? problems.orElse(ofEventId(receiver, text), null) : [],
  ]);
  const events = answers.flatMap((one) => one ?? []);
  const known = new Map(events.map((event) => [event.eventId, event]));
  const isUnknown = known.size === 0 && answers.includes(null);
  return {
    events: isUnknown ? null : [...known.values()].toSorted((a, b) => b.acceptedAt - a.acceptedAt),
    next: null,
    unsearched: unsearched.size === 0 ? null : [...unsearched].join(" "),
  };
}

/** Finds events by an id. Ids belong to a tenant: if there are several tenants and none is given, none is looked through. */
function ofId(
  asked: Promise<readonly EventSummary[]>,
  problems: Problems,
  unsearched: Set<string>,
): Promise<readonly EventSummary[] | null> {
  const known = asked.catch((error: unknown) => {
    if (!isPayhooksError(error) || error.code !== "ERR_OPTION_MISSING") throw error;
    unsearched.add("The id of a transaction or webhook is found together with its tenant: name the tenant.");
    return [];
  });
  return problems.orElse(known, null);
}

/** How many pages of unfinished events are looked through where the inbox cannot search. */
const MOST_PAGES = 20;

/**
 * Finds events by their reference. In an inbox that cannot search for references, it looks through what is unfinished or held.
 */
async function ofReference(
  receiver: Receiver,
  referenceId: string,
  tenant: string | undefined,
  problems: Problems,
  unsearched: Set<string>,
): Promise<readonly EventSummary[] | null> {
  try {
    return await receiver.find({ referenceId, tenant });
  } catch (error) {
    if (!isPayhooksError(error) || error.code !== "ERR_NOT_SEARCHABLE") {
      return problems.orElse(Promise.reject(error), null);
    }
  }
  unsearched.add("Finished events were not looked through: this inbox does not search for references.");
  const events: EventSummary[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const asked = receiver.events.list({ referenceId, tenant }, { limit: MOST_PER_PAGE, cursor });
    const page: EventPage | null = await problems.orElse(asked, null);
    if (page === null) return null;
    events.push(...page.events);
    cursor = page.next;
    if (cursor === null) return events;
  }
  unsearched.add("There are too many unfinished events to look through all of them.");
  return events;
}

async function ofEventId(receiver: Receiver, eventId: string): Promise<readonly EventSummary[]> {
  const life = await receiver.read(eventId);
  if (life === null) return [];
  const { flow, id, tenant } = life;
  const all = await receiver.find(
    flow === "payments" ? { payTxnId: id, tenant } : { idempotencyKey: id, tenant },
  );
  return all.filter((event) => event.eventId === eventId);
}

/** Collects what went wrong. Only the first message is kept, and it may be shown. */
class Problems {
  text: string | null = null;
  /** The status of the page. */
  status: 200 | 400 | 503 = 200;

  /** Takes over what went wrong elsewhere. */
  add({ text, status }: Problems): void {
    this.text ??= text;
    if (status > this.status) this.status = status;
  }

  /** Resolves with the answer, or with a substitute if an error of Payhooks prevented it. */
  async orElse<Answer, Otherwise>(asked: Promise<Answer>, otherwise: Otherwise): Promise<Answer | Otherwise> {
    try {
      return await asked;
    } catch (error) {
      if (!isPayhooksError(error)) throw error;
      this.text ??= error.message;
      if (error.status === 503) this.status = 503;
      // An inbox that cannot search has not failed: the page says what to do about it, and shows the rest.
      else if (error.code !== "ERR_NOT_SEARCHABLE" && this.status === 200) this.status = 400;
      return otherwise;
    }
  }
}
