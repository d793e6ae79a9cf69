import { type EventCounts, type EventSummary, isPayhooksError, type Receiver } from "@payhooks/core";
import type { Activity } from "./activity/activity.ts";
import { may } from "./guard.ts";
import type { ConsoleUser } from "./options.ts";
import { type ConsoleQuery, filterOf, isEventId } from "./query.ts";
import { activityCard } from "./views/chart.ts";
import { countTiles, reasonLinks } from "./views/counts.ts";
import { lifeCards, noLife } from "./views/life.ts";
import { type Decision, eventsCard } from "./views/list.ts";
import { logCard } from "./views/log.ts";
import type { Regions } from "./views/page.ts";

const PAGE_SIZE = 50;
/** How many ids one answer has, for a decision about all events that match. */
const IDS_SIZE = 500;

const NO_COUNTS: EventCounts = {
  waiting: 0,
  retrying: 0,
  running: 0,
  held: 0,
  heldBy: {},
  oldestDueMs: null,
};

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
  const counts = await problems.orElse(receiver.events.counts(), NO_COUNTS);
  const always = { counts: countTiles(counts, query) };
  if (query.eventId !== null) {
    const life = await problems.orElse(receiver.read(query.eventId), null);
    const cards = life === null ? noLife(query) : lifeCards({ query, life, redact, rights });
    const status = problems.text === null && life === null ? 404 : problems.status;
    return { regions: { ...always, life: cards }, problem: problems.text, status };
  }
  const { events, next } = await listed(request, problems);
  const regions = {
    ...always,
    reasons: reasonLinks(counts, query),
    events: eventsCard({ query, events, next, redact, rights }),
    activity: activityCard(activity, query, Date.now()),
    log: logCard(activity, query, redact),
  };
  return { regions, problem: problems.text, status: problems.status };
}

/** The ids of the held events that match the filter, page by page. */
export async function eventIdsOn({ receiver, query }: PageRequest): Promise<{
  readonly ids: readonly string[];
  readonly next: string | null;
}> {
  const filter = { ...filterOf(query), state: "held" } as const;
  const { events, next } = await receiver.events.list(filter, { limit: IDS_SIZE, cursor: query.cursor });
  return { ids: events.map(({ eventId }) => eventId), next };
}

interface Listed {
  readonly events: readonly EventSummary[];
  readonly next: string | null;
}

async function listed({ receiver, query }: PageRequest, problems: Problems): Promise<Listed> {
  const { search, cursor, tenant } = query;
  if (search !== null)
    return { events: await found(receiver, search, tenant ?? undefined, problems), next: null };
  const page = receiver.events.list(filterOf(query), { limit: PAGE_SIZE, cursor, first: "newest" });
  return problems.orElse(page, { events: [], next: null });
}

/** All events that have a text as one of their ids. The person who searches need not know which kind of id it is. */
async function found(
  receiver: Receiver,
  text: string,
  tenant: string | undefined,
  problems: Problems,
): Promise<readonly EventSummary[]> {
  const answers = await Promise.all([
    ofId(receiver.find({ payTxnId: text, tenant }), problems),
    ofId(receiver.find({ idempotencyKey: text, tenant }), problems),
    ofReference(receiver, text, tenant, problems),
    isEventId(text) ? problems.orElse(ofEventId(receiver, text), []) : [],
  ]);
  const known = new Map(answers.flat().map((event) => [event.eventId, event]));
  return [...known.values()].toSorted((a, b) => b.acceptedAt - a.acceptedAt);
}

/** Finds events by an id. Ids belong to a tenant. If there are several tenants and none is given, it finds nothing. */
function ofId(asked: Promise<readonly EventSummary[]>, problems: Problems): Promise<readonly EventSummary[]> {
  const known = asked.catch((error: unknown) => {
    if (isPayhooksError(error) && error.code === "ERR_OPTION_MISSING") return [];
    throw error;
  });
  return problems.orElse(known, []);
}

/**
 * Finds events by their reference. An inbox that cannot search for references still lists what is unfinished or held.
 */
async function ofReference(
  receiver: Receiver,
  referenceId: string,
  tenant: string | undefined,
  problems: Problems,
): Promise<readonly EventSummary[]> {
  const all = await problems.orElse(receiver.find({ referenceId, tenant }), null);
  if (all !== null) return all;
  const page = receiver.events.list({ referenceId, tenant }, { limit: PAGE_SIZE });
  return (await problems.orElse(page, { events: [], next: null })).events;
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
