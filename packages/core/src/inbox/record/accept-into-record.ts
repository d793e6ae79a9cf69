import type { EventFacts } from "../../notices/notice.ts";
import { countFurtherContradiction, makeRoom } from "./contradictions.ts";
import type { AcceptOutcome, AcceptResult, VerifiedEvent } from "./event.ts";
import type { Lane } from "./lane.ts";
import { countCopy, endSlot, type IdempotencyRecord, referenceOf, type Slot } from "./record.ts";
import { claimOf, type ReferenceClaim } from "./reference-claim.ts";
import { type Ruling, rankOf, ruleOn } from "./table.ts";

/** The claim of an event that is accepted (`oneSuccessPerReference`), or null. Only a SUCCESS with the verdict `run` claims. */
export function claimAtAcceptance(
  record: IdempotencyRecord | null,
  event: VerifiedEvent,
  now: number,
): ReferenceClaim | null {
  if (event.referenceKey === null || !event.isWithinWindow) return null;
  const { verdict, slot } = ruleOn(record, event);
  return verdict === "run" ? claimOf(event, record, slot, now) : null;
}

/** The facts besides its record on which the acceptance of an event depends. */
export interface AcceptContext {
  /** The store's clock. */
  readonly now: number;
  /** The event falls due after this many milliseconds. */
  readonly delayMs: number;
  /** The lane in which the event waits, if it is new. */
  readonly lane: Lane;
  /** The kept text of an instrumentation; null if it has none. */
  readonly trace?: string | null | undefined;
  /** Another id has the reference already (`oneSuccessPerReference`). */
  readonly isReferenceReused: boolean;
  /** Throws if there is no room for an event with this outcome. Nothing is changed then. */
  readonly admit: (outcome: AcceptOutcome) => void;
}

/** The result for an event, and whether the record was changed. */
export interface AcceptStep {
  readonly accepted: AcceptResult;
  /** The slot of the event. The record does not always have it. */
  readonly slot: string;
  /** The record to write; null if the stored one stays as it is. */
  readonly record: IdempotencyRecord | null;
}

/** The event, with its verdict after the look-up of its reference. */
function withVerdict(event: VerifiedEvent, isReferenceReused: boolean): VerifiedEvent {
  if (!isReferenceReused || event.verdict !== "run") return event;
  return {
    ...event,
    verdict: "reference-reused",
    detail: "another payTxnId has a SUCCESS for this reference",
  };
}

const NONE_OVERTAKEN: readonly EventFacts[] = [];

/** Accepts an event as the table says. The record is changed in place if necessary. If it is null, a new one is made. */
export function accept(
  record: IdempotencyRecord | null,
  verified: VerifiedEvent,
  { now, delayMs, lane, trace, isReferenceReused, admit }: AcceptContext,
): AcceptStep {
  const event = withVerdict(verified, isReferenceReused);
  const ruling = ruleOn(record, event);
  const slot = record?.slots[ruling.slot];
  const base = { eventId: event.key + ruling.slot, ...NO_DETAILS };
  if (slot === undefined && ruling.outcome !== "stale" && !event.isWithinWindow) {
    return { accepted: { outcome: "expired", ...base }, slot: ruling.slot, record: null };
  }
  const lastContradiction =
    slot === undefined && ruling.outcome === "held" && record !== null ? makeRoom(record) : null;
  if (lastContradiction !== null && record !== null)
    return countContradiction(record, lastContradiction, event, ruling, now);
  if (slot === undefined) admit(ruling.outcome);
  const changedRecord = record ?? newRecord(event);
  const isLater = extendExpiry(changedRecord, event, now);
  if (ruling.outcome === "stale") {
    return {
      accepted: { outcome: "stale", ...base },
      slot: ruling.slot,
      record: isLater ? changedRecord : null,
    };
  }
  if (slot !== undefined && record !== null) {
    const { accepted, isChanged } = acceptCopy(slot, event, ruling, now);
    return { accepted, slot: ruling.slot, record: isLater || isChanged ? changedRecord : null };
  }
  // While another event of the record runs, no other process can run this one, so a delay would not reserve it.
  const waitMs = changedRecord.lease === null ? delayMs : 0;
  const accepted = addSlot(changedRecord, event, ruling, { now, delayMs: waitMs, lane, trace });
  return { accepted, slot: ruling.slot, record: changedRecord };
}

/** The record is full of contradictions. This one is only counted, and answered as if it were kept. */
function countContradiction(
  record: IdempotencyRecord,
  last: string,
  event: VerifiedEvent,
  { verdict, detail }: Ruling,
  now: number,
): AcceptStep {
  const slot = record.slots[last];
  const isCounted = slot !== undefined && countFurtherContradiction(slot, now);
  const eventId = event.key + last;
  const reason = verdict === "run" ? null : verdict;
  const why = { reason, detail: detail ?? event.detail };
  const accepted: AcceptResult = { outcome: "held", ...NO_DETAILS, eventId, ...why };
  return { accepted, slot: last, record: isCounted ? record : null };
}

/** The fields of a result that has nothing to say about them. */
export const NO_DETAILS: Omit<AcceptResult, "outcome" | "eventId"> = {
  reason: null,
  detail: null,
  previousAmount: null,
  isBegun: false,
  overtaken: NONE_OVERTAKEN,
};

function newRecord(event: VerifiedEvent): IdempotencyRecord {
  return {
    flow: event.delivery.flow,
    tenant: event.delivery.tenant,
    id: event.id,
    statusSlot: null,
    isClosed: false,
    fixedFacts: {},
    lease: null,
    slots: {},
    signedAt: 0,
    expiresAt: 0,
  };
}

/** Updates the signed time and the expiry. False if the record knows a later time. Then nothing has to be written. */
function extendExpiry(record: IdempotencyRecord, event: VerifiedEvent, now: number): boolean {
  const isLater = event.signedAt !== null && event.signedAt > record.signedAt;
  if (!isLater && record.expiresAt > 0) return false;
  if (event.signedAt !== null && isLater) record.signedAt = event.signedAt;
  record.expiresAt = Math.max(record.expiresAt, Math.max(now, record.signedAt) + event.retentionMs);
  return true;
}

function acceptCopy(
  slot: Slot,
  event: VerifiedEvent,
  { outcome, slot: slotKey }: Ruling,
  now: number,
): { readonly accepted: AcceptResult; readonly isChanged: boolean } {
  const { arrivedBy } = event.delivery;
  let previousAmount: string | null = null;
  const isCounted = countCopy(slot, now);
  const isNewAmount =
    event.amount !== null && slot.amounts[arrivedBy] === undefined && slot.erasedAt === undefined;
  if (event.amount !== null && isNewAmount) {
    previousAmount = Object.values(slot.amounts).find((amount) => amount !== event.amount) ?? null;
    slot.amounts = { ...slot.amounts, [arrivedBy]: event.amount };
  }
  const work = slot.state === "held" ? slot.work : null;
  const accepted: AcceptResult = {
    outcome,
    eventId: event.key + slotKey,
    reason: work?.reason ?? null,
    detail: work?.detail ?? null,
    previousAmount,
    isBegun: false,
    overtaken: NONE_OVERTAKEN,
  };
  return { accepted, isChanged: isNewAmount || isCounted };
}

function addSlot(
  record: IdempotencyRecord,
  event: VerifiedEvent,
  ruling: Ruling,
  { now, delayMs, lane, trace }: Pick<AcceptContext, "now" | "delayMs" | "lane" | "trace">,
): AcceptResult {
  const isToRun = ruling.verdict === "run";
  const previousAmount = isToRun ? amountBefore(record, event) : null;
  const previousStatus = isToRun ? (slotOfStatus(record)?.status ?? null) : null;
  // The other events of the record were erased. This event is new.
  if (record.id === "") record.id = event.id;
  if (isToRun) {
    record.statusSlot = ruling.slot;
    record.isClosed = event.rank === (event.lastRank ?? 1);
    record.fixedFacts = { ...record.fixedFacts, ...event.fixedFacts };
  }
  const reason = ruling.verdict === "run" ? null : ruling.verdict;
  const detail = ruling.detail ?? (reason === event.verdict ? event.detail : null);
  record.slots[ruling.slot] = {
    name: event.name,
    status: event.status,
    rank: event.rank,
    referenceId: event.referenceId === record.fixedFacts.referenceId ? null : event.referenceId,
    amounts: event.amount === null ? {} : { [event.delivery.arrivedBy]: event.amount },
    verdict: ruling.verdict,
    state: isToRun ? "waiting" : "held",
    isOnHeldDone: false,
    replays: 0,
    acceptedAt: now,
    runToken: null,
    ...(event.subject === undefined ? {} : { subject: event.subject }),
    work: {
      delivery: event.delivery,
      retentionMs: event.retentionMs,
      ...(event.keepMs === undefined ? {} : { keepMs: event.keepMs }),
      reason,
      detail,
      heldAt: isToRun ? 0 : now,
      dueAt: now + delayMs,
      originalDelayMs: delayMs,
      begunEarlyAt: null,
      handlerStates: {},
      onlyHandlers: null,
      evenIfExpired: event.evenIfExpired === true,
      ...(event.foundBy === undefined || event.foundBy.length === 0 ? {} : { foundBy: event.foundBy }),
      ...(lane === "patient" ? { patient: true } : {}),
      ...(trace == null ? {} : { trace }),
      previousStatus,
      previousAmount,
      history: [{ at: now, what: reason === null ? "accepted" : `held: ${reason}` }],
    },
  };
  const eventId = event.key + ruling.slot;
  const overtaken = overtake(record, event.key, now);
  return { outcome: ruling.outcome, eventId, reason, detail, previousAmount, isBegun: false, overtaken };
}

function slotOfStatus({ statusSlot, slots }: IdempotencyRecord): Slot | undefined {
  return statusSlot === null ? undefined : slots[statusSlot];
}

function amountBefore(record: IdempotencyRecord, event: VerifiedEvent): string | null {
  const before = slotOfStatus(record);
  if (before === undefined || event.amount === null) return null;
  const knownAmount = before.amounts[event.delivery.arrivedBy] ?? Object.values(before.amounts)[0];
  return knownAmount === undefined || knownAmount === event.amount ? null : knownAmount;
}

/**
 * When a status is recorded, each waiting event of a lower rank ends as stale in the same write, even a replay. One exception: a
 * replayed entry that has not entered the table yet. The table will judge it when it runs.
 */
export function overtake(record: IdempotencyRecord, key: string, now: number): readonly EventFacts[] {
  const rank = rankOf(record);
  if (rank === 0) return NONE_OVERTAKEN;
  let overtaken: EventFacts[] | null = null;
  for (const slotKey in record.slots) {
    const slot = record.slots[slotKey];
    if (slot === undefined || slot.work === null || slot.state !== "waiting") continue;
    if (slot.rank === null || slot.rank >= rank) continue;
    const { flow, tenant, id } = record;
    const { name: event, status } = slot;
    const referenceId = referenceOf(record, slot);
    overtaken ??= [];
    overtaken.push({ flow, tenant, eventId: key + slotKey, id, event, status, referenceId });
    endSlot(record, slot, { at: now, what: "stale" });
  }
  return overtaken ?? NONE_OVERTAKEN;
}
