/**
 * Carries out a decision about many events, one after the other.
 *
 * A bulk has no record of its own. Instead, each event that it has decided about keeps the bulk's name, as a token, and
 * a later call with this name skips the event. So a bulk that was killed continues when it is called again, and decides
 * about no event twice.
 */
import { checkFlag } from "../../protocol/check-names.ts";
import { isNotSearchable, PayhooksError } from "../../protocol/errors.ts";
import { shown } from "../../protocol/foreign-value.ts";
import { HELD_REASONS } from "../../protocol/held-reasons.ts";
import { Stopwatch, sleep } from "../../time/clock.ts";
import {
  BULK_REASONS,
  type BulkFilter,
  type BulkOptions,
  type BulkOutcome,
  type BulkReason,
  type BulkReport,
} from "../contract/bulk.ts";
import type { EventFilter, EventQuery } from "../contract/event-query.ts";
import type { ListCursor, Versioned } from "../contract/store.ts";
import type { UnreadableEvents } from "../contract/unreadable-events.ts";
import { isUnreadable, type Unreadable } from "../record/codec.ts";
import { type Decided, eventIn, isMade, reasonOf } from "../record/decisions.ts";
import { isEventId, recordKeyOf, slotKeyOf } from "../record/event.ts";
import { indexOf } from "../record/index-of.ts";
import { hashOf } from "../record/keys.ts";
import { predicateOf } from "../search/event-predicate.ts";
import { filterOf } from "../search/event-reader.ts";
import { matches } from "../search/listing.ts";
import { UnreadableCounter, unsearched } from "../search/unreadable.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { unreadableError } from "../write/records.ts";

/** One event of a bulk, as it was read. */
export interface FoundEvent {
  readonly eventId: string;
  readonly versioned: Versioned | null;
}

export type DecideOne = (found: FoundEvent, decisionToken: string, dryRun: boolean) => Promise<Decided>;

const PAGE = 500;
const DEFAULT_PER_SECOND = 50;

export type DecisionKind = "replay" | "discard" | "retry" | "erase";

/** A decision about several events: the inbox, and what is decided. */
export interface BulkDecision {
  readonly core: InboxCore;
  readonly kind: DecisionKind;
}

/** Decides about several events, one after the other. */
export async function decideAll(
  bulk: BulkDecision,
  which: readonly string[] | BulkFilter,
  options: BulkOptions,
  decide: DecideOne,
): Promise<BulkReport> {
  const { environment, store } = bulk.core;
  const { dryRun = false, perSecond = DEFAULT_PER_SECOND, signal, progress } = options;
  checkFlag("dryRun", dryRun);
  checkPace(perSecond);
  const filter = isIds(which) ? null : checkFilter(which, options.name);
  const until = filter === null ? null : (filter.until ?? Math.ceil(store.now("")) + 1);
  const name = options.name ?? environment.token();
  const decisionToken = hashOf(["bulk", bulk.kind, name], 32);
  const isNamed = namesOf(filter, bulk.kind);
  const isChosen = predicateOf(filter ?? {}) ?? (() => true);
  const eventIds = filter?.eventIds;
  const stillMatches =
    eventIds === undefined ? () => true : matcherOf({ ...filter, until: until ?? undefined });
  const counts = { found: 0, decided: 0, alreadyDecided: 0, complete: true };
  const byReason: Partial<Record<BulkReason, number>> = {};
  const skipped: Partial<Record<Exclude<Decided, "decided" | "already-decided">, number>> = {};
  const excluded: Partial<Record<BulkReason, number>> = {};
  const unreadable = new UnreadableCounter();
  /** The events that a search cannot find, because they cannot be read. */
  let missed: UnreadableEvents | null = null;
  const report = (): BulkReport => ({
    name,
    until,
    dryRun,
    ...counts,
    byReason: { ...byReason },
    skipped: { ...skipped },
    unreadable: unreadable.events ?? missed,
    excluded: { ...excluded },
  });
  const events =
    filter === null || eventIds !== undefined
      ? named(bulk, eventIds ?? (which as readonly string[]))
      : matching(bulk, { ...filter, until: until ?? undefined }, (record) => {
          missed ??= { count: null, error: unreadableError(record) };
        });
  const time = new Stopwatch(environment);
  let written = 0;
  const stopKeepingAlive = environment.keepAlive();
  try {
    for await (const found of events) {
      const aheadMs = dryRun ? 0 : (written * 1_000) / perSecond - time.elapsedMs;
      if (aheadMs > 0) await sleep(environment, aheadMs, signal);
      if (signal?.aborted === true || bulk.core.isClosing) {
        counts.complete = false;
        break;
      }
      if (unreadable.countIfUnreadable(found.versioned)) continue;
      const { reason, event } = read(found);
      const isOther = event !== null && !(isChosen(event) && stillMatches(found));
      if (isOther && eventIds === undefined) continue;
      // Nothing is decided about an event that has changed. It is asked only whether this bulk has decided about it before.
      const isOut = reason !== null && !isNamed(reason);
      const tried = isOut ? "excluded" : await decide(found, decisionToken, dryRun || isOther);
      const outcome = isOther && tried !== "already-decided" ? "changed" : tried;
      counts.found++;
      if (isMade(outcome)) written++;
      if (outcome === "excluded") addOne(excluded, reason);
      else if (outcome === "already-decided") counts.alreadyDecided++;
      else if (outcome !== "decided") addOne(skipped, outcome);
      else {
        counts.decided++;
        addOne(byReason, reason);
      }
      progress?.({ eventId: found.eventId, reason, outcome, event }, report());
    }
    if (counts.found === 0 && filter !== null && eventIds === undefined)
      missed ??= await unsearched(store, filterOf(queryOf(filter)));
  } finally {
    stopKeepingAlive();
  }
  return report();
}

/** True if events are named by their ids. */
export function isIds(which: readonly string[] | BulkFilter): which is readonly string[] {
  return Array.isArray(which);
}

function addOne<Name extends string>(counts: Partial<Record<Name, number>>, name: Name | null): void {
  if (name !== null) counts[name] = (counts[name] ?? 0) + 1;
}

function read({ eventId, versioned }: FoundEvent): Pick<BulkOutcome, "reason" | "event"> {
  const record = versioned === null || isUnreadable(versioned.record) ? null : versioned.record;
  const slot = record?.slots[slotKeyOf(eventId)];
  return { reason: slot === undefined ? null : reasonOf(slot), event: eventIn(record, eventId) };
}

/** True for the reasons of the events that a bulk is about. A list of ids names its events itself. */
function namesOf(filter: BulkFilter | null, kind: DecisionKind): (reason: BulkReason) => boolean {
  if (filter === null) return () => true;
  const { reason } = filter;
  if (reason !== undefined) {
    const named = new Set(typeof reason === "string" ? [reason] : reason);
    return (one) => named.has(one);
  }
  if (kind === "erase" || kind === "retry") return () => true;
  const truths: Readonly<Partial<Record<BulkReason, string>>> = HELD_REASONS;
  return (one) => one !== "discarded" && truths[one] !== "truth";
}

async function* named({ core }: BulkDecision, ids: readonly string[]): AsyncGenerator<FoundEvent> {
  const unique = [...new Set(ids)];
  for (let at = 0; at < unique.length; at += PAGE) {
    const page = unique.slice(at, at + PAGE);
    const keys = page.filter(isEventId).map(recordKeyOf);
    const records = await core.store.read(keys);
    const byKey = new Map(keys.map((key, at) => [key, records[at] ?? null]));
    for (const eventId of page) yield { eventId, versioned: byKey.get(recordKeyOf(eventId)) ?? null };
  }
}

function queryOf({ reason: _reason, eventIds: _eventIds, ...query }: BulkFilter): EventQuery {
  return query;
}

/** Tests an event as it was read: true if it matches the fields by which a store can search. */
function matcherOf(given: BulkFilter): (found: FoundEvent) => boolean {
  const filter = filterOf(queryOf(given));
  return ({ eventId, versioned }) => {
    if (versioned === null || isUnreadable(versioned.record)) return false;
    const { events } = indexOf(recordKeyOf(eventId), versioned.record);
    return events.some((labels) => labels.eventId === eventId && matches(labels, filter));
  };
}

/** The events that match. A store that lists no finished events is read as a whole. */
async function* matching(
  bulk: BulkDecision,
  given: BulkFilter,
  onUnreadable: (record: Unreadable) => void,
): AsyncGenerator<FoundEvent> {
  const { store } = bulk.core;
  const filter = filterOf(queryOf(given));
  try {
    let cursor: ListCursor | null = null;
    do {
      const page: Awaited<ReturnType<typeof store.list>> = await store.list(filter, cursor, PAGE, "oldest");
      yield* page.events;
      cursor = page.next;
    } while (cursor !== null);
  } catch (error) {
    if (!isNotSearchable(error) || store.scan === undefined) throw error;
    yield* scanned(store.scan.bind(store), filter, onUnreadable);
  }
}

async function* scanned(
  scan: NonNullable<InboxCore["store"]["scan"]>,
  filter: EventFilter,
  onUnreadable: (record: Unreadable) => void,
): AsyncGenerator<FoundEvent> {
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof scan>> = await scan(cursor, PAGE);
    for (const { key, version, record } of page.records) {
      if (isUnreadable(record)) {
        // It cannot be read, so whether its events match is not known.
        onUnreadable(record);
        continue;
      }
      for (const labels of indexOf(key, record).events) {
        if (matches(labels, filter)) yield { eventId: labels.eventId, versioned: { version, record } };
      }
    }
    cursor = page.next;
  } while (cursor !== null);
}

function checkFilter(filter: BulkFilter, name: string | undefined): BulkFilter {
  for (const reason of [filter.reason ?? []].flat() as readonly string[]) {
    if (Object.hasOwn(BULK_REASONS, reason)) continue;
    throw new PayhooksError("ERR_OPTION_INVALID", `A reason is ${shown(reason)}.`, {
      fix: `It can be ${Object.keys(BULK_REASONS).join(", ")}.`,
    });
  }
  const { eventIds } = filter;
  if (eventIds !== undefined && !(isIds(eventIds) && eventIds.every((one) => typeof one === "string"))) {
    throw new PayhooksError("ERR_OPTION_INVALID", "The eventIds of a filter are not a list of texts.", {
      fix: "Give the eventId of each event, or leave eventIds out.",
    });
  }
  if (name !== undefined && filter.until === undefined) {
    throw new PayhooksError("ERR_OPTION_MISSING", "The filter has a `name` but no `until`.", {
      fix: "Give the `until` of the earlier report, so that both calls decide about the same events.",
    });
  }
  return filter;
}

function checkPace(perSecond: number): void {
  if (typeof perSecond === "number" && perSecond > 0) return;
  throw new PayhooksError("ERR_OPTION_INVALID", `perSecond is ${shown(perSecond)}.`, {
    fix: "Give a number above zero, or Infinity.",
  });
}
