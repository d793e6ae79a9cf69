import type { DecisionResult } from "./decisions.ts";
import { slotKeyOf } from "./event.ts";
import { endSlot, type IdempotencyRecord, isUnfinished } from "./record.ts";

/**
 * Erases an event: its signed text, its reference, its amounts, its errors and its history. Its state, its times, and
 * the keys of record and slot (hashes) stay, so that copies are recognised. If `shouldDiscard` is true, an event that
 * waits or is held is discarded first. For an event that was erased before, the result is `already-decided`.
 */
export function erase(
  record: IdempotencyRecord | null,
  eventId: string,
  shouldDiscard: boolean,
  now: number,
): DecisionResult {
  const slotKey = slotKeyOf(eventId);
  const slot = record?.slots[slotKey];
  if (record === null || slot === undefined) return "missing";
  if (slot.erasedAt !== undefined) return "already-decided";
  const isLeased = record.lease?.slot === slotKey;
  if (slot.state === "running" && isLeased && (record.lease?.until ?? 0) > now) return "running";
  if (isUnfinished(slot)) {
    if (!shouldDiscard) return "unfinished";
    if (isLeased) record.lease = null;
    endSlot(record, slot, { at: now, what: "discarded" });
  }
  const {
    name,
    status,
    rank,
    verdict,
    state,
    isOnHeldDone,
    replays,
    acceptedAt,
    runToken,
    decisionToken,
    subject,
  } = slot;
  record.slots[slotKey] = {
    // The name and status of an event that is not listed can be any text.
    name: rank === null ? "" : name,
    status: rank === null ? "" : status,
    rank,
    referenceId: null,
    amounts: {},
    verdict,
    state,
    isOnHeldDone,
    replays,
    acceptedAt,
    runToken,
    work: null,
    ...(decisionToken === undefined ? {} : { decisionToken }),
    ...(subject === undefined ? {} : { subject }),
    erasedAt: now,
  };
  if (Object.values(record.slots).every(({ erasedAt }) => erasedAt !== undefined)) {
    record.id = "";
    record.fixedFacts = {};
  }
  return "decided";
}
