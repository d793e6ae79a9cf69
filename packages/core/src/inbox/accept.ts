import type { Accepted, AcceptOutcome, Job, VerifiedEvent } from "./inbox.ts";
import { end, type IdempotencyRecord, type Slot } from "./record.ts";
import { decide, type Ruling } from "./table.ts";

/** The reference that the event claims (`oneSuccessPerReference`), or null: only a SUCCESS that runs, or ran, does. */
export function claimedReference(record: IdempotencyRecord | null, event: VerifiedEvent): string | null {
  if (event.referenceKey === null || !event.fresh) return null;
  return decide(record, event).verdict === "run" ? event.referenceKey : null;
}

/** What a store has to know to accept an event, beside its record. */
export interface AcceptContext {
  /** The store's clock. */
  readonly now: number;
  /** Another id has the reference already (`oneSuccessPerReference`). */
  readonly referenceReused: boolean;
  /** Throws where the store has no room for that outcome; nothing is changed then. */
  readonly admit?: (outcome: AcceptOutcome) => void;
}

/** The event with the verdict that it has once its reference was looked up. */
function judged(event: VerifiedEvent, referenceReused: boolean): VerifiedEvent {
  if (!referenceReused || event.verdict !== "run") return event;
  return {
    ...event,
    verdict: "reference-reused",
    detail: "another payTxnId has a SUCCESS for this reference",
  };
}

/**
 * The atomic step: decides, and claims the slot. The record is changed in place; null makes a new one, which is
 * returned with the answer, or null when nothing is to be stored.
 */
export function accept(
  record: IdempotencyRecord | null,
  given: VerifiedEvent,
  { now, referenceReused, admit }: AcceptContext,
): { readonly record: IdempotencyRecord | null; readonly accepted: Accepted } {
  const event = judged(given, referenceReused);
  const ruling = decide(record, event);
  const slot = record?.slots[ruling.slot];
  const job: Job = { eventId: event.key + ruling.slot, replay: slot?.replays ?? 0 };
  if (slot === undefined && ruling.outcome !== "stale" && !event.fresh) {
    return {
      record: null,
      accepted: { outcome: "expired", job, pending: false, reason: null, detail: null, previousAmount: null },
    };
  }
  admit?.(ruling.outcome);
  const changed = record ?? newRecord(event);
  extend(changed, event, now);
  if (ruling.outcome === "stale") {
    if (slot?.state === "waiting") end(changed, slot, "stale", now);
    return {
      record: changed,
      accepted: { outcome: "stale", job, pending: false, reason: null, detail: null, previousAmount: null },
    };
  }
  if (slot !== undefined) return { record: changed, accepted: acceptCopy(slot, event, ruling, job) };
  return { record: changed, accepted: claim(changed, event, ruling, job, now) };
}

function newRecord(event: VerifiedEvent): IdempotencyRecord {
  return {
    flow: event.delivery.flow,
    tenant: event.delivery.tenant,
    id: event.id,
    status: null,
    statusSlot: null,
    terminal: false,
    identity: {},
    fence: 0,
    lease: null,
    slots: {},
    signedAt: 0,
    expiresAt: 0,
  };
}

function extend(record: IdempotencyRecord, event: VerifiedEvent, now: number): void {
  if (event.signedAt !== null && event.signedAt > record.signedAt) record.signedAt = event.signedAt;
  record.expiresAt = Math.max(record.expiresAt, Math.max(now, record.signedAt) + event.retentionMs);
}

function acceptCopy(slot: Slot, event: VerifiedEvent, ruling: Ruling, job: Job): Accepted {
  const { source } = event.delivery;
  let previousAmount: string | null = null;
  if (event.amount !== null && slot.amounts[source] === undefined) {
    previousAmount = Object.values(slot.amounts).find((amount) => amount !== event.amount) ?? null;
    slot.amounts = { ...slot.amounts, [source]: event.amount };
  }
  return {
    outcome: ruling.outcome,
    job,
    pending: ruling.outcome === "resume",
    reason: slot.state === "held" ? (slot.work?.reason ?? null) : null,
    detail: slot.state === "held" ? (slot.work?.detail ?? null) : null,
    previousAmount,
  };
}

function claim(
  record: IdempotencyRecord,
  event: VerifiedEvent,
  ruling: Ruling,
  job: Job,
  now: number,
): Accepted {
  const run = ruling.verdict === "run";
  const previousAmount = run ? amountBefore(record, event) : null;
  const previousStatus = run ? record.status : null;
  if (run) {
    record.status = event.status;
    record.statusSlot = ruling.slot;
    record.terminal = event.rank === 1;
    record.identity = { ...record.identity, ...event.identity };
  }
  const reason = ruling.verdict === "run" ? null : ruling.verdict;
  const detail = ruling.detail ?? (reason === event.verdict ? event.detail : null);
  record.slots[ruling.slot] = {
    name: event.name,
    status: event.status,
    amounts: event.amount === null ? {} : { [event.delivery.source]: event.amount },
    verdict: ruling.verdict,
    queued: false,
    state: run ? "waiting" : "held",
    told: false,
    replays: 0,
    work: {
      delivery: event.delivery,
      retentionMs: event.retentionMs,
      reason,
      detail,
      heldAt: run ? 0 : now,
      dueAt: 0,
      forcedAt: null,
      steps: {},
      only: null,
      evenIfExpired: false,
      previousStatus,
      previousAmount,
      history: [{ at: now, what: reason === null ? "accepted" : `held: ${reason}` }],
    },
  };
  return { outcome: ruling.outcome, job, pending: true, reason, detail, previousAmount };
}

function amountBefore(record: IdempotencyRecord, event: VerifiedEvent): string | null {
  const before = record.statusSlot === null ? undefined : record.slots[record.statusSlot];
  if (before === undefined || event.amount === null) return null;
  const known = before.amounts[event.delivery.source] ?? Object.values(before.amounts)[0];
  return known === undefined || known === event.amount ? null : known;
}
