/**
 * Compares two states of one record after a move has copied it. Since then, both copies may have changed, and it is not
 * known which is older. But a record only goes forward, so its own fields show which copy is later.
 */
import { MAX_CONTRADICTIONS } from "./contradictions.ts";
import { isEventId } from "./event.ts";
import { type HandlerState, ON_HELD_PREFIX } from "./handler-state.ts";
import { type IdempotencyRecord, isUnfinished, type OpenWork, type Slot } from "./record.ts";

/**
 * True if `one` includes everything that happened to `other`. Then `other` can be dropped: no event is lost or runs again, and
 * erased events stay erased.
 */
export function knowsAllOf(one: IdempotencyRecord, other: IdempotencyRecord): boolean {
  if (one.expiresAt < other.expiresAt) return false;
  const slots = Object.entries(other.slots);
  if (slots.length === 0) return hasSameOwner(one, other);
  return slots.every(([key, slot]) => {
    const own = one.slots[key];
    return own === undefined ? hasDropped(one, slot) : slotKnowsAllOf(own, slot);
  });
}

/** Of side records: a claim has one owner. A subject has a later event, or the same one. */
function hasSameOwner(one: IdempotencyRecord, other: IdempotencyRecord): boolean {
  return one.id === other.id || (isEventId(one.id) && isEventId(other.id) && one.signedAt > other.signedAt);
}

/** True if a record that is full has dropped a contradiction, to make room for a later one. */
function hasDropped({ slots }: IdempotencyRecord, { verdict, acceptedAt }: Slot): boolean {
  const kept = Object.values(slots).filter((slot) => slot.verdict !== "run");
  const isFull = verdict !== "run" && kept.length >= MAX_CONTRADICTIONS;
  return isFull && kept.some((slot) => slot.acceptedAt >= acceptedAt);
}

function slotKnowsAllOf(one: Slot, other: Slot): boolean {
  // Each inbox has accepted a delivery of the event by itself, so neither state is a later state of the other.
  if (one.acceptedAt !== other.acceptedAt) return false;
  if (one.erasedAt !== undefined || other.erasedAt !== undefined) return one.erasedAt !== undefined;
  if (one.replays !== other.replays) return one.replays > other.replays && canBeReplayed(other);
  if (one.work === null) return true;
  return other.work !== null && workKnowsAllOf(one, one.work, other, other.work);
}

/** False for an event that has ended and cannot be run again. No replay can follow that state. */
function canBeReplayed(slot: Slot): boolean {
  return isUnfinished(slot) || slot.kept !== undefined;
}

/** An event goes from waiting to held, and back only by a replay. */
function workKnowsAllOf(
  one: Slot,
  { handlerStates }: OpenWork,
  other: Slot,
  { handlerStates: others }: OpenWork,
): boolean {
  const isHeld = one.state === "held";
  if (other.state === "held" && (!isHeld || (other.onHeldDone && !one.onHeldDone))) return false;
  return Object.entries(others).every(([name, state]) => {
    // These begin anew when the event is held.
    if (name.startsWith(ON_HELD_PREFIX) && isHeld && other.state !== "held") return true;
    return stateKnowsAllOf(handlerStates[name], state);
  });
}

function stateKnowsAllOf(one: HandlerState | undefined, other: HandlerState): boolean {
  if (one === undefined || one.attempts < other.attempts) return false;
  if (one.state === "done" || one.state === other.state) return true;
  return other.state !== "done" && other.state !== "given-up";
}
