/**
 * Carries out a decision about many events, one after the other.
 *
 * A bulk has no record of its own. Instead, each event that it has decided about keeps the bulk's name, as a token, and
 * a later call with this name skips the event. So a bulk that was killed continues when it is called again, and decides
 * about no event twice.
 */
import { checkFlag } from "../../protocol/check-names.ts";
import { isNotSearchable, PayhooksError } from "../../protocol/errors.ts";
import { describeValue } from "../../protocol/foreign-value.ts";
import { HELD_REASONS } from "../../protocol/held-reasons.ts";
import { sleep } from "../../time/clock.ts";
import {
  BULK_REASONS,
  type BulkFilter,
  type BulkOptions,
  type BulkOutcome,
  type BulkReason,
  type BulkReport,
} from "../contract/bulk.ts";
import type { EventFilter, EventQuery } from "../contract/event-query.ts";
import type { ListCursor, VersionedRecord } from "../contract/store.ts";
import type { UnreadableEvents } from "../contract/unreadable-events.ts";
import { isUnreadable, readableRecord, type UnreadableRecord } from "../record/codec.ts";
import { type DecisionResult, eventIn, isMade, reasonOf } from "../record/decisions.ts";
import { isEventId, recordKeyOf, slotKeyOf } from "../record/event.ts";
import { indexOf } from "../record/index-of.ts";
import { hashOf } from "../record/keys.ts";
import { predicateOf } from "../search/event-predicate.ts";
import { filterOf } from "../search/event-reader.ts";
import { matchesFilter } from "../search/listing.ts";
import { findUnsearched, UnreadableCounter } from "../search/unreadable.ts";
import type { InboxCore } from "../write/inbox-core.ts";
import { changeErrorOf, isRecordError, unreadableError } from "../write/records.ts";

/** One event of a bulk, as it was read. */
export interface FoundEvent {
  readonly eventId: string;
  readonly versioned: VersionedRecord | null;
}

export type DecideOne = (
  found: FoundEvent,
  decisionToken: string,
  dryRun: boolean,
) => Promise<DecisionResult>;

const PAGE_SIZE = 500;
const DEFAULT_PER_SECOND = 50;
/** A timer of the platform takes this long at least. So shorter pauses add up until they are as long. */
const MIN_PAUSE_MS = 1;

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
  const filter = isIdList(which) ? null : checkFilter(which, options.name);
  const until = filter === null ? null : (filter.until ?? Math.ceil(store.now("")) + 1);
  const name = options.name ?? environment.token();
  const decisionToken = hashOf(["bulk", bulk.kind, name], 32);
  const isNamedReason = reasonTestOf(filter, bulk.kind);
  const isChosen = predicateOf(filter ?? {}) ?? (() => true);
  const eventIds = filter?.eventIds;
  const stillMatches =
    eventIds === undefined ? () => true : matcherOf({ ...filter, until: until ?? undefined });
  const counts = { found: 0, decided: 0, alreadyDecided: 0, complete: true };
  const byReason: Partial<Record<BulkReason, number>> = {};
  const skipped: Partial<Record<Exclude<DecisionResult, "decided" | "already-decided">, number>> = {};
  const excluded: Partial<Record<BulkReason, number>> = {};
  const unreadable = new UnreadableCounter();
  /** The events that a search cannot find, because they cannot be read. */
  let missedEvents: UnreadableEvents | null = null;
  const report = (): BulkReport => ({
    name,
    until,
    dryRun,
    ...counts,
    byReason: { ...byReason },
    skipped: { ...skipped },
    unreadable: unreadable.events ?? missedEvents,
    excluded: { ...excluded },
  });
  const events =
    filter === null || eventIds !== undefined
      ? readByIds(bulk, eventIds ?? (which as readonly string[]))
      : listMatching(bulk, { ...filter, until: until ?? undefined }, (record) => {
          missedEvents ??= { count: null, error: unreadableError(record) };
        });
  /** The next decision comes no earlier than this (monotonic clock). Time without decisions is not made up for later. */
  let notBefore = Number.NEGATIVE_INFINITY;
  async function decideAboutOne(foundEvent: FoundEvent): Promise<void> {
    const { reason, event } = readFacts(foundEvent);
    const isUnmatched = event !== null && !(isChosen(event) && stillMatches(foundEvent));
    if (isUnmatched && eventIds === undefined) return;
    const startedAt = environment.monotonic();
    // Nothing is decided about an event that has changed. It is asked only whether this bulk has decided about it before.
    const isExcluded = reason !== null && !isNamedReason(reason);
    const result = isExcluded ? "excluded" : await decide(foundEvent, decisionToken, dryRun || isUnmatched);
    const outcome = isUnmatched && result !== "already-decided" ? "changed" : result;
    counts.found++;
    if (isMade(outcome) && !dryRun) notBefore = Math.max(startedAt, notBefore) + 1_000 / perSecond;
    if (outcome === "excluded") addOne(excluded, reason);
    else if (outcome === "already-decided") counts.alreadyDecided++;
    else if (outcome !== "decided") addOne(skipped, outcome);
    else {
      counts.decided++;
      addOne(byReason, reason);
    }
    progress?.({ eventId: foundEvent.eventId, reason, outcome, event }, report());
  }
  const stopKeepingAlive = environment.keepAlive();
  try {
    for await (const foundEvent of events) {
      const earlyMs = notBefore - environment.monotonic();
      if (earlyMs >= MIN_PAUSE_MS) await sleep(environment, earlyMs, signal);
      if (signal?.aborted === true || bulk.core.isClosing) {
        counts.complete = false;
        break;
      }
      if (unreadable.countIfUnreadable(foundEvent.versioned)) continue;
      try {
        await decideAboutOne(foundEvent);
      } catch (error) {
        // Since it was read, the record has become unreadable. Or its fields contradict each other.
        if (!isRecordError(error)) throw error;
        unreadable.countError(error);
      }
    }
    if (counts.found === 0 && filter !== null && eventIds === undefined)
      missedEvents ??= await findUnsearched(store, filterOf(queryOf(filter)));
  } finally {
    stopKeepingAlive();
  }
  return report();
}

/** True if events are named by their ids. */
export function isIdList(which: readonly string[] | BulkFilter): which is readonly string[] {
  return Array.isArray(which);
}

function addOne<Name extends string>(counts: Partial<Record<Name, number>>, name: Name | null): void {
  if (name !== null) counts[name] = (counts[name] ?? 0) + 1;
}

function readFacts({ eventId, versioned }: FoundEvent): Pick<BulkOutcome, "reason" | "event"> {
  const record = readableRecord(versioned);
  const slot = record?.slots[slotKeyOf(eventId)];
  try {
    return { reason: slot === undefined ? null : reasonOf(slot), event: eventIn(record, eventId) };
  } catch (error) {
    throw changeErrorOf(error);
  }
}

/** True for the reasons of the events that a bulk is about. A list of ids names its events itself. */
function reasonTestOf(filter: BulkFilter | null, kind: DecisionKind): (reason: BulkReason) => boolean {
  if (filter === null) return () => true;
  const { reason } = filter;
  if (reason !== undefined) {
    const reasons = new Set(typeof reason === "string" ? [reason] : reason);
    return (eventReason) => reasons.has(eventReason);
  }
  if (kind === "erase" || kind === "retry") return () => true;
  const kindByReason: Readonly<Partial<Record<BulkReason, string>>> = HELD_REASONS;
  return (eventReason) => eventReason !== "discarded" && kindByReason[eventReason] !== "investigate";
}

async function* readByIds({ core }: BulkDecision, ids: readonly string[]): AsyncGenerator<FoundEvent> {
  const unique = [...new Set(ids)];
  for (let start = 0; start < unique.length; start += PAGE_SIZE) {
    const page = unique.slice(start, start + PAGE_SIZE);
    const keys = page.filter(isEventId).map(recordKeyOf);
    const records = await core.store.read(keys);
    const byKey = new Map(keys.map((key, index) => [key, records[index] ?? null]));
    for (const eventId of page) yield { eventId, versioned: byKey.get(recordKeyOf(eventId)) ?? null };
  }
}

function queryOf({ reason: _reason, eventIds: _eventIds, ...query }: BulkFilter): EventQuery {
  return query;
}

/** Tests an event as it was read: true if it matches the fields by which a store can search. */
function matcherOf(bulkFilter: BulkFilter): (found: FoundEvent) => boolean {
  const filter = filterOf(queryOf(bulkFilter));
  return ({ eventId, versioned }) => {
    const record = readableRecord(versioned);
    if (record === null) return false;
    const { events } = indexOf(recordKeyOf(eventId), record);
    return events.some((labels) => labels.eventId === eventId && matchesFilter(labels, filter));
  };
}

/** The events that match. A store that lists no finished events is read as a whole. */
async function* listMatching(
  bulk: BulkDecision,
  bulkFilter: BulkFilter,
  onUnreadable: (record: UnreadableRecord) => void,
): AsyncGenerator<FoundEvent> {
  const { store } = bulk.core;
  const filter = filterOf(queryOf(bulkFilter));
  try {
    let cursor: ListCursor | null = null;
    do {
      const page: Awaited<ReturnType<typeof store.list>> = await store.list(
        filter,
        cursor,
        PAGE_SIZE,
        "oldest",
      );
      yield* page.events;
      cursor = page.next;
    } while (cursor !== null);
  } catch (error) {
    if (!isNotSearchable(error) || store.scan === undefined) throw error;
    yield* scanMatching(store.scan.bind(store), filter, onUnreadable);
  }
}

async function* scanMatching(
  scan: NonNullable<InboxCore["store"]["scan"]>,
  filter: EventFilter,
  onUnreadable: (record: UnreadableRecord) => void,
): AsyncGenerator<FoundEvent> {
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof scan>> = await scan(cursor, PAGE_SIZE);
    for (const { key, version, record } of page.records) {
      if (isUnreadable(record)) {
        // It cannot be read, so whether its events match is not known.
        onUnreadable(record);
        continue;
      }
      for (const labels of indexOf(key, record).events) {
        if (matchesFilter(labels, filter)) yield { eventId: labels.eventId, versioned: { version, record } };
      }
    }
    cursor = page.next;
  } while (cursor !== null);
}

function checkFilter(filter: BulkFilter, name: string | undefined): BulkFilter {
  for (const reason of [filter.reason ?? []].flat() as readonly string[]) {
    if (Object.hasOwn(BULK_REASONS, reason)) continue;
    throw new PayhooksError("ERR_OPTION_INVALID", `A reason is ${describeValue(reason)}.`, {
      fix: `It can be ${Object.keys(BULK_REASONS).join(", ")}.`,
    });
  }
  const { eventIds } = filter;
  if (
    eventIds !== undefined &&
    !(isIdList(eventIds) && eventIds.every((eventId) => typeof eventId === "string"))
  ) {
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
  throw new PayhooksError("ERR_OPTION_INVALID", `perSecond is ${describeValue(perSecond)}.`, {
    fix: "Give a number above zero, or Infinity.",
  });
}
