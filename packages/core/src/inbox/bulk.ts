/**
 * Decisions about many events: which ones, how fast, and what became of each.
 *
 * Nothing is kept about a bulk beside its events. Each event that it has decided about carries the bulk's name, as a token, and is left
 * alone when it comes up again. So a bulk that was killed is resumed by asking for it once more, and no event is decided about twice.
 */
import { isNotSearchable, PayhooksError } from "../protocol/errors.ts";
import { HELD_REASONS, type HeldReason, isAboutTruth } from "../protocol/held-reasons.ts";
import { Stopwatch, sleep } from "../time/clock.ts";
import type { EventFilter, EventQuery } from "./events.ts";
import { matches } from "./matches.ts";
import type { InboxParts } from "./parts.ts";
import { isUnreadable } from "./record/codec.ts";
import { type Decided, eventIn, reasonOf } from "./record/decisions.ts";
import { isEventId, recordKeyOf, slotKeyOf } from "./record/event.ts";
import { indexOf } from "./record/index-of.ts";
import { hashOf } from "./record/keys.ts";
import type { StoredEvent } from "./record/life.ts";
import type { ListCursor, Versioned } from "./store.ts";

/** By what a bulk names events: see `reason` of {@link BulkFilter}. */
export type BulkReason = HeldReason | "done" | "discarded";

/** The events of a bulk: those that match all of the fields. */
export interface BulkFilter extends Omit<EventQuery, "reason" | "limit" | "cursor" | "first"> {
  /**
   * Why they are held; of finished ones, `done`, `discarded`, or the contradiction that they were accepted as, such as `mismatch`.
   * Default: `done`, and the reasons for which something has to be mended (`exhausted`, `rejected`, `schema`, `unhandled`). All others
   * are questions of what is true, and left out unless they are named.
   */
  readonly reason?: BulkReason | readonly BulkReason[] | undefined;
}

/** Which events a decision is about: one, several, or all that match. */
export type Which = string | readonly string[] | BulkFilter;

/** How a decision about several events is carried out. */
export interface BulkOptions {
  /** Only says what would become of each. */
  readonly dryRun?: boolean | undefined;
  /** How many events are decided about in a second. Default 50. */
  readonly perSecond?: number | undefined;
  /**
   * Identifies the bulk. Give the same name again to go on with one that was interrupted: what it has decided about is left alone. A
   * filter needs `until` then, so that both are about the same events. Default: a new one.
   */
  readonly name?: string | undefined;
  /** Ends the bulk behind the event that it is at. */
  readonly signal?: AbortSignal | undefined;
  /** Called for each event, with the report so far. */
  readonly progress?: ((outcome: BulkOutcome, report: BulkReport) => void) | undefined;
}

/** What became of one event of a bulk. */
export interface BulkOutcome {
  readonly eventId: string;
  /** What it was named by; null for an event that has none. */
  readonly reason: BulkReason | null;
  /** `left-out`: its reason was not named. With `dryRun`, `decided` is what would be. */
  readonly outcome: Decided | "left-out";
  /** As it was before; null if the inbox does not know it. */
  readonly event: StoredEvent | null;
}

/** What became of a bulk. */
export interface BulkReport {
  /** To go on with it: see {@link BulkOptions.name}. */
  readonly name: string;
  /** Events that were accepted at this time or later are not part of it. Null if ids were given. */
  readonly until: number | null;
  readonly dryRun: boolean;
  /** How many events were looked at. */
  readonly found: number;
  /** How many were decided about now, or would be. */
  readonly decided: number;
  /** Those by their reasons. */
  readonly byReason: Readonly<Partial<Record<BulkReason, number>>>;
  /** How many an earlier call of the same name had decided about. */
  readonly known: number;
  /** How many were left alone, by why. */
  readonly leftAlone: Readonly<Partial<Record<Exclude<Decided, "decided" | "known">, number>>>;
  /** How many were left out since their reason was not named, by that. */
  readonly leftOut: Readonly<Partial<Record<BulkReason, number>>>;
  /** False if it was ended by its signal, so that there may be more. */
  readonly isWhole: boolean;
}

/** One event of a bulk, as it was read. */
export interface Found {
  readonly eventId: string;
  readonly versioned: Versioned | null;
}

/** Decides about one event. */
export type DecideOne = (found: Found, token: string, dryRun: boolean) => Promise<Decided>;

const PAGE = 500;
const DEFAULT_PER_SECOND = 50;

/** What a bulk needs from its inbox. */
export interface BulkParts {
  readonly parts: InboxParts;
  /** Checks a query, and returns the filter for the store. */
  filterOf(query: EventQuery): EventFilter;
  /** Whether a filter that names no reason leaves out those that are questions of what is true. */
  readonly hasDefaultReasons: boolean;
}

/** Decides about several events, one after the other. */
export async function decideAll(
  bulk: BulkParts,
  which: readonly string[] | BulkFilter,
  options: BulkOptions,
  decide: DecideOne,
): Promise<BulkReport> {
  const { environment, store } = bulk.parts;
  const { dryRun = false, perSecond = DEFAULT_PER_SECOND, signal, progress } = options;
  checkPace(perSecond);
  const filter = isIds(which) ? null : checkFilter(which, options.name);
  const until = filter === null ? null : (filter.until ?? Math.ceil(store.now("")) + 1);
  const name = options.name ?? environment.token();
  const token = hashOf(["bulk", name], 32);
  const isNamed = namesOf(filter, bulk.hasDefaultReasons);
  const counts = { found: 0, decided: 0, known: 0, isWhole: true };
  const byReason: Partial<Record<BulkReason, number>> = {};
  const leftAlone: Partial<Record<Exclude<Decided, "decided" | "known">, number>> = {};
  const leftOut: Partial<Record<BulkReason, number>> = {};
  const report = (): BulkReport => ({
    name,
    until,
    dryRun,
    ...counts,
    byReason: { ...byReason },
    leftAlone: { ...leftAlone },
    leftOut: { ...leftOut },
  });
  const events =
    filter === null
      ? named(bulk, which as readonly string[])
      : matching(bulk, { ...filter, until: until ?? undefined });
  const time = new Stopwatch(environment);
  const letGo = environment.hold();
  try {
    for await (const found of events) {
      if (signal?.aborted === true || bulk.parts.isClosing) {
        counts.isWhole = false;
        break;
      }
      const aheadMs = dryRun ? 0 : (counts.decided * 1_000) / perSecond - time.elapsedMs;
      if (aheadMs > 0) await sleep(environment, aheadMs);
      const { reason, event } = read(found);
      const isOut = reason !== null && !isNamed(reason);
      const outcome = isOut ? "left-out" : await decide(found, token, dryRun);
      counts.found++;
      if (outcome === "left-out") addOne(leftOut, reason ?? "done");
      else if (outcome === "known") counts.known++;
      else if (outcome !== "decided") addOne(leftAlone, outcome);
      else {
        counts.decided++;
        addOne(byReason, reason ?? "done");
      }
      progress?.({ eventId: found.eventId, reason, outcome, event }, report());
    }
  } finally {
    letGo();
  }
  return report();
}

/** Whether events are named by their ids. */
export function isIds(which: readonly string[] | BulkFilter): which is readonly string[] {
  return Array.isArray(which);
}

function addOne<Name extends string>(counts: Partial<Record<Name, number>>, name: Name): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

function read({ eventId, versioned }: Found): Pick<BulkOutcome, "reason" | "event"> {
  const record = versioned === null || isUnreadable(versioned.record) ? null : versioned.record;
  const slot = record?.slots[slotKeyOf(eventId)];
  return { reason: slot === undefined ? null : reasonOf(slot), event: eventIn(record, eventId) };
}

/** Whether a bulk is about events with a reason. A list of ids names its events itself. */
function namesOf(filter: BulkFilter | null, hasDefault: boolean): (reason: BulkReason) => boolean {
  if (filter === null || (filter.reason === undefined && !hasDefault)) return () => true;
  const { reason } = filter;
  if (reason !== undefined) {
    const named = new Set(typeof reason === "string" ? [reason] : reason);
    return (one) => named.has(one);
  }
  return (one) => one === "done" || (one !== "discarded" && !isAboutTruth(one));
}

async function* named({ parts }: BulkParts, ids: readonly string[]): AsyncGenerator<Found> {
  const unique = [...new Set(ids)];
  for (let at = 0; at < unique.length; at += PAGE) {
    const page = unique.slice(at, at + PAGE);
    const keys = page.filter(isEventId).map(recordKeyOf);
    const records = await parts.store.read(keys);
    const byKey = new Map(keys.map((key, place) => [key, records[place] ?? null]));
    for (const eventId of page) yield { eventId, versioned: byKey.get(recordKeyOf(eventId)) ?? null };
  }
}

/** The events that match. A store that lists no finished events is read as a whole. */
async function* matching(bulk: BulkParts, { reason: _, ...query }: BulkFilter): AsyncGenerator<Found> {
  const { store } = bulk.parts;
  const filter = bulk.filterOf(query);
  try {
    let cursor: ListCursor | null = null;
    do {
      const page: Awaited<ReturnType<typeof store.list>> = await store.list(filter, cursor, PAGE, "oldest");
      yield* page.events;
      cursor = page.next;
    } while (cursor !== null);
  } catch (error) {
    if (!isNotSearchable(error) || store.scan === undefined) throw error;
    yield* scanned(store.scan.bind(store), filter);
  }
}

async function* scanned(
  scan: NonNullable<InboxParts["store"]["scan"]>,
  filter: EventFilter,
): AsyncGenerator<Found> {
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof scan>> = await scan(cursor, PAGE);
    for (const { key, version, record } of page.records) {
      if (isUnreadable(record)) continue;
      for (const labels of indexOf(key, record).events) {
        if (matches(labels, filter)) yield { eventId: labels.eventId, versioned: { version, record } };
      }
    }
    cursor = page.next;
  } while (cursor !== null);
}

const REASONS: Readonly<Record<BulkReason, unknown>> = { ...HELD_REASONS, done: true, discarded: true };

function checkFilter(filter: BulkFilter, name: string | undefined): BulkFilter {
  for (const reason of [filter.reason ?? []].flat() as readonly string[]) {
    if (Object.hasOwn(REASONS, reason)) continue;
    throw new PayhooksError("ERR_OPTION_INVALID", `A reason is ${JSON.stringify(reason)}.`, {
      fix: `It can be ${Object.keys(REASONS).join(", ")}.`,
    });
  }
  if (name !== undefined && filter.until === undefined) {
    throw new PayhooksError("ERR_OPTION_MISSING", "A filter has a name to go on with, and no until.", {
      fix: "Give the until of its report, so that both calls are about the same events.",
    });
  }
  return filter;
}

function checkPace(perSecond: number): void {
  if (typeof perSecond === "number" && perSecond > 0) return;
  throw new PayhooksError("ERR_OPTION_INVALID", `perSecond is ${String(perSecond)}.`, {
    fix: "Give a number above zero, or Infinity.",
  });
}
