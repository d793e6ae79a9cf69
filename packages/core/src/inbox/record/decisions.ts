import type { HeldReason } from "../../protocol/held-reasons.ts";
import { overtake } from "./accept-into-record.ts";
import { recordKeyOf, slotKeyOf } from "./event.ts";
import { stateOf } from "./index-of.ts";
import { amountOf, otherEventsOf, revisionOf } from "./other-events.ts";
import {
  addHistory,
  endSlot,
  type IdempotencyRecord,
  type OpenWork,
  referenceOf,
  type Slot,
} from "./record.ts";
import type { Decision, ReplayDecision, RetryDecision, StoredEvent } from "./stored-event.ts";
import { rankOf } from "./table.ts";

/**
 * The result of a decision about one event.
 *
 * - `decided`: it was made now.
 * - `already-decided`: it was made before, under the same token (for an erasure, under any token), even if the event has run
 *   since.
 * - `overtaken`: it was held, and a later status has come, so this decision has ended it, as `stale`.
 * - `missing`: there is no such event. `unfinished`: it waits or runs. `running`: it runs.
 * - `due`: it is due now, so it waits for no later attempt. `not-waiting`: it is held or has ended, so it waits for no attempt.
 * - `not-held`: it has ended. `not-kept`: it has ended, and what was signed is gone.
 * - `superseded`: it had ended, as `stale` or as `done`, and a later status, or a later event of its subject, has replaced it.
 * - `changed`: its revision is no longer the one that was seen, or it no longer matches the filter that names its eventId.
 */
export type DecisionResult =
  | "decided"
  | "already-decided"
  | "overtaken"
  | "missing"
  | "unfinished"
  | "running"
  | "due"
  | "not-waiting"
  | "not-held"
  | "not-kept"
  | "superseded"
  | "changed";

/** The names in a decision about one event. */
export interface DecisionName {
  readonly decisionToken: string;
  /** The revision that the person has seen; undefined: any. */
  readonly revision: string | undefined;
}

/** Makes a person's decision once. If it was written before, its token shows that. The record is changed if it is `decided`. */
export function decideOnce(
  record: IdempotencyRecord | null,
  eventId: string,
  { decisionToken, revision }: DecisionName,
  decide: () => DecisionResult,
): DecisionResult {
  const slotKey = slotKeyOf(eventId);
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined) return "missing";
  if (slot.decisionToken === decisionToken) return "already-decided";
  // If no decision about the event is possible, it has no revision, and the result of the decision says why.
  const currentRevision = revision === undefined ? null : revisionOf(record, recordKeyOf(eventId), slotKey);
  if (currentRevision !== null && currentRevision !== revision) return "changed";
  const result = decide();
  if (isMade(result)) slot.decisionToken = decisionToken;
  return result;
}

/** True if a decision was made now. Then it has to be written. */
export function isMade(result: DecisionResult | "excluded"): boolean {
  return result === "decided" || result === "overtaken";
}

/** Why an event cannot be run again. Null if it can. */
function whyNotReplayable({ state, kept }: Slot): "unfinished" | "superseded" | "not-kept" | null {
  if (state === "held") return null;
  if (state === "waiting" || state === "running") return "unfinished";
  if (state === "stale") return "superseded";
  return kept === undefined ? "not-kept" : null;
}

/** The result that a replay of the event has. */
function resultOfReplay(record: IdempotencyRecord, slot: Slot): DecisionResult {
  const why = whyNotReplayable(slot);
  if (why !== null) return why;
  if (slot.rank === null || slot.rank >= rankOf(record)) return "decided";
  return slot.state === "held" ? "overtaken" : "superseded";
}

/**
 * Makes a held or finished event wait again, as its next replay. A held event runs the handlers that have not finished.
 * A finished event runs all handlers. A held PENDING that was overtaken ends instead.
 */
export function replay(
  record: IdempotencyRecord | null,
  eventId: string,
  decision: ReplayDecision,
  now: number,
): DecisionResult {
  const slotKey = slotKeyOf(eventId);
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined) return "missing";
  const result = resultOfReplay(record, slot);
  if (!isMade(result)) return result;
  const onlyHandlers = decision.handlers ?? null;
  const work = slot.work ?? reopenWork(slot);
  if (work === null) return "not-kept";
  // If a process is calling the onHeld handlers about the event, it loses its lease.
  if (record.lease?.slot === slotKey) record.lease = null;
  slot.work = work;
  slot.state = "waiting";
  slot.isOnHeldDone = false;
  slot.replays++;
  work.dueAt = now;
  work.originalDelayMs = 0;
  work.begunEarlyAt = null;
  work.onlyHandlers = onlyHandlers;
  work.evenIfExpired = decision.evenIfExpired === true;
  if (decision.repeatEffects === true) work.repeatEffects = true;
  else delete work.repeatEffects;
  delete work.untriedHandlers;
  work.handlerStates = Object.fromEntries(
    Object.entries(work.handlerStates).filter(
      ([name, kept]) => kept.state === "done" && !(onlyHandlers?.includes(name) ?? false),
    ),
  );
  addHistory(work, { at: now, what: `replay ${slot.replays}`, by: decision.by, note: decision.note });
  overtake(record, recordKeyOf(eventId), now);
  return result;
}

/** The work for another run of an ended event, made of the kept part; null if nothing was kept. */
function reopenWork(slot: Slot): OpenWork | null {
  const { kept, past, verdict, acceptedAt, subject } = slot;
  if (kept === undefined) return null;
  delete slot.kept;
  delete slot.past;
  // Its turn is over. If the subject's record has expired since, a later event may have had a turn.
  if (subject !== undefined) slot.subject = { key: subject.key, at: subject.at };
  return {
    ...kept,
    reason: verdict === "run" ? null : verdict,
    detail: null,
    heldAt: 0,
    dueAt: 0,
    originalDelayMs: 0,
    begunEarlyAt: null,
    handlerStates: {},
    onlyHandlers: null,
    evenIfExpired: false,
    history: [...(past?.history ?? [{ at: acceptedAt, what: "accepted" }])],
    ...(past !== undefined && past.copies > 0 ? { copies: past.copies } : {}),
    ...(past?.lastCopyAt == null ? {} : { lastCopyAt: past.lastCopyAt }),
  };
}

/** Makes the next attempt of an event due. */
export function retryNow(
  record: IdempotencyRecord | null,
  eventId: string,
  { by, note }: RetryDecision,
  now: number,
): DecisionResult {
  const slotKey = slotKeyOf(eventId);
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined) return "missing";
  const { state, work } = slot;
  if (state === "running" || (state === "waiting" && record.lease?.slot === slotKey)) return "running";
  if (state !== "waiting" || work === null) return "not-waiting";
  const laterHandlers = Object.entries(work.handlerStates).filter(([, state]) => state.dueAt > now);
  if (work.dueAt <= now && laterHandlers.length === 0) return "due";
  work.dueAt = Math.min(work.dueAt, now);
  work.originalDelayMs = work.dueAt - now;
  for (const [name, state] of laterHandlers)
    work.handlerStates[name] = { ...state, dueAt: now, delayWhenWrittenMs: 0 };
  addHistory(work, { at: now, what: "attempt brought forward", by, note });
  return "decided";
}

/** Drops a held event for good. Its copies stay duplicates. */
export function discard(
  record: IdempotencyRecord | null,
  eventId: string,
  { by, note }: Decision,
  now: number,
): DecisionResult {
  const slot = record?.slots[slotKeyOf(eventId)];
  if (record === null || slot === undefined) return "missing";
  if (slot.state === "waiting" || slot.state === "running") return "unfinished";
  if (slot.state !== "held") return "not-held";
  if (record.lease?.slot === slotKeyOf(eventId)) record.lease = null;
  endSlot(record, slot, { at: now, what: "discarded", by, note });
  return "decided";
}

/** The names of reasons in a bulk: see `reason` of a `BulkFilter`. */
export type BulkReason = HeldReason | "done" | "discarded" | "stale" | "unfinished";

/**
 * The reason by which a bulk selects an event. Of a held event: why it is held. Of an ended event: `stale`,
 * `discarded`, `done`, or the contradiction that it was accepted as, such as `mismatch`. Of a waiting or running event:
 * `unfinished`.
 */
export function reasonOf({ state, verdict, work }: Slot): BulkReason {
  if (state === "held") return work?.reason ?? "unfinished";
  if (state === "waiting" || state === "running") return "unfinished";
  if (state !== "done") return state;
  return verdict === "run" ? "done" : verdict;
}

/** The event, as far as the record still has it; null when the record does not know the event. */
export function eventIn(record: IdempotencyRecord | null, eventId: string): StoredEvent | null {
  const slot = record?.slots[slotKeyOf(eventId)];
  if (record === null || slot === undefined) return null;
  const { work } = slot;
  return {
    eventId,
    flow: record.flow,
    tenant: record.tenant,
    id: record.id,
    event: slot.name,
    status: slot.status,
    state: stateOf(slot),
    reason: slot.state === "held" ? (work?.reason ?? null) : null,
    detail: work?.detail ?? null,
    heldAt: slot.state === "held" ? (work?.heldAt ?? null) : null,
    referenceId: referenceOf(record, slot),
    amount: amountOf(slot),
    others: otherEventsOf(record, recordKeyOf(eventId), slotKeyOf(eventId)),
    revision: revisionOf(record, recordKeyOf(eventId), slotKeyOf(eventId)),
    acceptedAt: slot.acceptedAt,
    lastDeliveryAt: work?.lastCopyAt ?? slot.past?.lastCopyAt ?? slot.acceptedAt,
    copies: work?.copies ?? slot.past?.copies ?? 0,
    replays: slot.replays,
    handlers: { ...work?.handlerStates },
    history: work?.history.slice() ?? slot.past?.history ?? [],
    delivery: work?.delivery ?? slot.kept?.delivery ?? null,
    erasedAt: slot.erasedAt ?? null,
  };
}
