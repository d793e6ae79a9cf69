/**
 * The order of the events of one subject, such as the KYC state of one connected account. A subject has a small record
 * of its own, without slots. It says which event is the latest that has begun to run.
 *
 * - `id` is the eventId of that event, and `signedAt` its signed time. An event that was signed earlier is stale from then on.
 * - `lease` belongs to the run of that event. Another event of the subject waits until the lease is over, so two of
 *   them never run at the same time.
 * - its content names the events that have begun and not ended, each with the time at which its last run began. The next
 *   event ends them before it calls a handler.
 *
 * An event takes its subject when its run begins, not when it is accepted. So a waiting event may still run before a
 * newer event, and never after it. `docs/decisions/0038-the-latest-event-of-a-subject.md` says why the subject has a
 * record of its own.
 */
import type { EventFacts } from "../../notices/notice.ts";
import type { FlowName } from "../../protocol/events.ts";
import { slotKeyOf } from "./event.ts";
import { endSlot, type IdempotencyRecord, referenceOf } from "./record.ts";
import { pullBackRecordTimes } from "./schedule.ts";
import { contentOf, setContent, sideRecord } from "./side-record.ts";

/**
 * The subject's answer to an event that is about to run. `acquired`: it is the latest event. `busy`: another event of the
 * subject runs. `overtaken`: a later event has begun. `equal`: another event was signed at the same time. `forgotten`:
 * a later event may have run so long ago that its record has expired.
 */
export type SubjectAnswer = "acquired" | "busy" | "overtaken" | "equal" | "forgotten";

/** The request of an event that is about to run. */
export interface SubjectRequest {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly eventId: string;
  readonly at: number;
  /** Identifies the run. */
  readonly token: string;
  /** When the run began (the store's clock). */
  readonly begunAt: number;
  readonly leaseMs: number;
  /** How long the subject is remembered after this run. */
  readonly retentionMs: number;
  /** A person has replayed the event, so it runs although another event was signed at the same time. */
  readonly isReplay: boolean;
  /** If there is no record of the subject, it may have been forgotten since the event arrived. */
  readonly mayBeForgotten: boolean;
}

/** The answer of a subject, with the record to write; null if the stored one stays as it is. */
export interface SubjectResult {
  readonly answer: SubjectAnswer;
  readonly record: IdempotencyRecord | null;
  /** With `acquired`: the events that have begun, and not ended, before this one. */
  readonly unfinishedEarlierIds: readonly string[];
}

const NO_EVENT_IDS: readonly string[] = [];

/**
 * Makes an event the latest event of its subject, and leases the subject to its run. If this is computed again, the answer is the
 * same.
 */
export function takeSubject(
  storedRecord: IdempotencyRecord | null,
  {
    flow,
    tenant,
    eventId,
    at,
    token,
    begunAt,
    leaseMs,
    retentionMs,
    isReplay,
    mayBeForgotten,
  }: SubjectRequest,
  now: number,
): SubjectResult {
  const refuse = (answer: SubjectAnswer): SubjectResult => ({
    answer,
    record: null,
    unfinishedEarlierIds: NO_EVENT_IDS,
  });
  if (storedRecord === null && mayBeForgotten) return refuse("forgotten");
  const unfinishedEvents = storedRecord === null ? {} : contentOf(storedRecord);
  if (storedRecord !== null) {
    pullBackRecordTimes(storedRecord, now);
    if (at < storedRecord.signedAt) return refuse("overtaken");
    const isOther = storedRecord.id !== eventId;
    if (isOther && at === storedRecord.signedAt && !isReplay) return refuse("equal");
    const isHeldByAnother =
      storedRecord.lease !== null && storedRecord.lease.until > now && storedRecord.lease.token !== token;
    // Another run of this event has begun later. So the process of this run stood still until its own lease had lapsed.
    const isOfLaterRun = Number(unfinishedEvents[eventId] ?? 0) > begunAt;
    if (isHeldByAnother && (isOther || isOfLaterRun)) return refuse("busy");
  }
  const unfinishedEarlierIds = Object.keys(unfinishedEvents).filter((id) => id !== eventId);
  if (storedRecord?.lease?.token === token) return { answer: "acquired", record: null, unfinishedEarlierIds };
  const record = sideRecord({
    flow,
    tenant,
    id: eventId,
    isClosed: true,
    content: { ...unfinishedEvents, [eventId]: String(begunAt) },
    lease: { slot: "", token, until: now + leaseMs, originalLengthMs: leaseMs },
    signedAt: at,
    expiresAt: subjectExpiryOf(storedRecord, at, retentionMs, now),
  });
  return { answer: "acquired", record, unfinishedEarlierIds };
}

/** Extends the lease of a run on its subject, counted from now. False if another run has it. */
export function renewSubject(
  storedRecord: IdempotencyRecord | null,
  token: string,
  leaseMs: number,
  now: number,
): boolean {
  if (storedRecord === null || storedRecord.lease?.token !== token) return false;
  storedRecord.lease = { slot: "", token, until: now + leaseMs, originalLengthMs: leaseMs };
  return true;
}

/** Gives the subject back after a run, without the events that have ended. False if another run has it. */
export function releaseSubject(
  storedRecord: IdempotencyRecord | null,
  token: string,
  endedIds: readonly string[],
  retentionMs: number,
  now: number,
): boolean {
  if (storedRecord === null || storedRecord.lease?.token !== token) return false;
  storedRecord.lease = null;
  const unfinished = Object.entries(contentOf(storedRecord)).filter(
    ([eventId]) => !endedIds.includes(eventId),
  );
  setContent(storedRecord, Object.fromEntries(unfinished));
  storedRecord.expiresAt = subjectExpiryOf(storedRecord, storedRecord.signedAt, retentionMs, now);
  return true;
}

function subjectExpiryOf(
  storedRecord: IdempotencyRecord | null,
  at: number,
  retentionMs: number,
  now: number,
): number {
  return Math.max(storedRecord?.expiresAt ?? 0, Math.max(now, at) + retentionMs);
}

/** The result for an event that a later event of its subject overtakes. */
export interface OvertakeResult {
  /** False while a run has the event. That run will find that the event is overtaken, or it calls onHeld handlers. */
  readonly hasEnded: boolean;
  /** The facts for its notice, if this change has ended it. */
  readonly facts: EventFacts | null;
}

/** Ends an event that waits or is held, because a later event of its subject begins. The record is changed if there are facts. */
export function overtakeBySubject(
  record: IdempotencyRecord | null,
  eventId: string,
  now: number,
): OvertakeResult {
  const slotKey = slotKeyOf(eventId);
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined || slot.work === null) return { hasEnded: true, facts: null };
  pullBackRecordTimes(record, now);
  const isLeased = record.lease?.slot === slotKey;
  if (isLeased && (record.lease?.until ?? 0) > now) return { hasEnded: false, facts: null };
  if (isLeased) record.lease = null;
  const { flow, tenant, id } = record;
  const { name: event, status } = slot;
  const facts = { flow, tenant, eventId, id, event, status, referenceId: referenceOf(record, slot) };
  endSlot(record, slot, { at: now, what: "stale" });
  return { hasEnded: true, facts };
}
