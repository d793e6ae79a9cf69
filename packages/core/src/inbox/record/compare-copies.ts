/**
 * Compares two states of one record after a move has copied it. Since then, both copies may have changed, and it is not
 * known which is older. But a record only goes forward, so its own fields show which copy is later.
 */
import { MAX_CONTRADICTIONS } from "./contradictions.ts";
import { isEventId } from "./event.ts";
import { type HandlerState, ON_HELD_PREFIX } from "./handler-state.ts";
import { type IdempotencyRecord, isUnfinished, type OpenWork, type Slot } from "./record.ts";

/**
 * True if `later` includes everything that happened to `earlier`. Then `earlier` can be dropped: no event is lost or runs again, and
 * erased events stay erased.
 */
export function knowsAllOf(later: IdempotencyRecord, earlier: IdempotencyRecord): boolean {
  if (later.expiresAt < earlier.expiresAt) return false;
  const slots = Object.entries(earlier.slots);
  if (slots.length === 0) return hasSameOwner(later, earlier);
  return slots.every(([key, slot]) => {
    const laterSlot = later.slots[key];
    return laterSlot === undefined ? hasDropped(later, slot) : slotKnowsAllOf(laterSlot, slot);
  });
}

/** Of side records: a claim has one owner. A subject has a later event, or the same one. */
function hasSameOwner(later: IdempotencyRecord, earlier: IdempotencyRecord): boolean {
  return (
    later.id === earlier.id ||
    (isEventId(later.id) && isEventId(earlier.id) && later.signedAt > earlier.signedAt)
  );
}

/** True if a record that is full has dropped a contradiction, to make room for a later one. */
function hasDropped({ slots }: IdempotencyRecord, { verdict, acceptedAt }: Slot): boolean {
  const contradictions = Object.values(slots).filter((slot) => slot.verdict !== "run");
  const isFull = verdict !== "run" && contradictions.length >= MAX_CONTRADICTIONS;
  return isFull && contradictions.some((slot) => slot.acceptedAt >= acceptedAt);
}

function slotKnowsAllOf(later: Slot, earlier: Slot): boolean {
  // Each inbox has accepted a delivery of the event by itself, so neither state is a later state of the other.
  if (later.acceptedAt !== earlier.acceptedAt) return false;
  if (later.erasedAt !== undefined || earlier.erasedAt !== undefined) return later.erasedAt !== undefined;
  if (later.replays !== earlier.replays) return later.replays > earlier.replays && canBeReplayed(earlier);
  if (later.work === null) return true;
  return earlier.work !== null && workKnowsAllOf(later, later.work, earlier, earlier.work);
}

/** False for an event that has ended and cannot be run again. No replay can follow that state. */
function canBeReplayed(slot: Slot): boolean {
  return isUnfinished(slot) || slot.kept !== undefined;
}

/** An event goes from waiting to held, and back only by a replay. */
function workKnowsAllOf(
  later: Slot,
  { handlerStates }: OpenWork,
  earlier: Slot,
  { handlerStates: earlierStates }: OpenWork,
): boolean {
  const isHeld = later.state === "held";
  if (earlier.state === "held" && (!isHeld || (earlier.isOnHeldDone && !later.isOnHeldDone))) return false;
  return Object.entries(earlierStates).every(([name, state]) => {
    // These begin anew when the event is held.
    if (name.startsWith(ON_HELD_PREFIX) && isHeld && earlier.state !== "held") return true;
    return stateKnowsAllOf(handlerStates[name], state);
  });
}

function stateKnowsAllOf(later: HandlerState | undefined, earlier: HandlerState): boolean {
  if (later === undefined || later.attempts < earlier.attempts) return false;
  if (later.state === "done" || later.state === earlier.state) return true;
  return earlier.state !== "done" && earlier.state !== "given-up";
}
