import { overtake } from "./accept.ts";
import { recordKeyOf, slotKeyOf } from "./event.ts";
import { stateOf } from "./index-of.ts";
import type { Decision, ReplayDecision, RetryDecision, StoredEvent } from "./life.ts";
import { amountOf, othersOf, revisionOf } from "./others.ts";
import { addHistory, end, type IdempotencyRecord, referenceOf } from "./record.ts";

/**
 * Makes a person's decision once. If it was written before, its token shows that, whatever has become of the event since.
 * `missing`: nothing is held under this id. `changed`: the person has seen another revision of the entry.
 */
export function decideOnce(
  record: IdempotencyRecord | null,
  eventId: string,
  { token, revision }: { readonly token: string; readonly revision: string | undefined },
  decide: () => boolean,
): "decided" | "known" | "missing" | "changed" {
  const slot = record?.slots[slotKeyOf(eventId)];
  if (slot?.decision === token) return "known";
  if (record === null || slot?.state !== "held") return "missing";
  if (revision !== undefined && revision !== revisionOf(record, recordKeyOf(eventId), slotKeyOf(eventId))) {
    return "changed";
  }
  if (!decide()) return "missing";
  slot.decision = token;
  return "decided";
}

/** Makes a held event wait again, as its next replay. A PENDING that was overtaken ends instead. False when it is not held. */
export function replay(
  record: IdempotencyRecord | null,
  eventId: string,
  decision: ReplayDecision,
  now: number,
): boolean {
  const slotKey = slotKeyOf(eventId);
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined || slot.work === null || slot.state !== "held") return false;
  const { work } = slot;
  const only = decision.handlers ?? null;
  // A process that is calling the onHeld handlers about it loses its lease.
  if (record.lease?.slot === slotKey) record.lease = null;
  slot.state = "waiting";
  slot.told = false;
  slot.replays++;
  work.dueAt = now;
  work.dueInMs = 0;
  work.forcedAt = null;
  work.only = only;
  work.evenIfExpired = decision.evenIfExpired === true;
  if (decision.again === true) work.again = true;
  else delete work.again;
  delete work.handlers;
  work.steps = Object.fromEntries(
    Object.entries(work.steps).filter(
      ([name, kept]) => kept.state === "done" && !(only?.includes(name) ?? false),
    ),
  );
  addHistory(work, { at: now, what: `replay ${slot.replays}`, by: decision.by, note: decision.note });
  overtake(record, recordKeyOf(eventId), now);
  return true;
}

/** Brings the next attempt of an event forward. False when it waits for none, or for one that is due sooner. */
export function retryNow(
  record: IdempotencyRecord | null,
  eventId: string,
  { by, note, inMs = 0 }: RetryDecision,
  now: number,
): boolean {
  const slotKey = slotKeyOf(eventId);
  const work = record?.slots[slotKey]?.work ?? null;
  if (record === null || work === null || record.slots[slotKey]?.state !== "waiting") return false;
  if (record.lease?.slot === slotKey) return false;
  const at = now + inMs;
  const later = Object.entries(work.steps).filter(([, step]) => step.dueAt > at);
  if (work.dueAt <= at && later.length === 0) return false;
  work.dueAt = Math.min(work.dueAt, at);
  work.dueInMs = work.dueAt - now;
  for (const [name, step] of later) work.steps[name] = { ...step, dueAt: at, dueInMs: inMs };
  addHistory(work, { at: now, what: "attempt brought forward", by, note });
  return true;
}

/** Drops a held event for good. Its copies stay duplicates. */
export function discard(
  record: IdempotencyRecord | null,
  eventId: string,
  { by, note }: Decision,
  now: number,
): boolean {
  const slotKey = slotKeyOf(eventId);
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined || slot.state !== "held") return false;
  if (record.lease?.slot === slotKey) record.lease = null;
  end(record, slot, { at: now, what: "discarded", by, note });
  return true;
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
    others: othersOf(record, recordKeyOf(eventId), slotKeyOf(eventId)),
    revision: revisionOf(record, recordKeyOf(eventId), slotKeyOf(eventId)),
    acceptedAt: slot.acceptedAt,
    lastDeliveryAt: work?.lastCopyAt ?? slot.past?.lastCopyAt ?? slot.acceptedAt,
    copies: work?.copies ?? slot.past?.copies ?? 0,
    replays: slot.replays,
    handlers: { ...work?.steps },
    history: work?.history.slice() ?? slot.past?.history ?? [],
    delivery: work?.delivery ?? slot.kept?.delivery ?? null,
  };
}
