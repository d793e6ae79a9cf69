import { stateOf } from "./index-of.ts";
import { hashOf } from "./keys.ts";
import type { IdempotencyRecord, Slot } from "./record.ts";
import type { OtherEvent } from "./stored-event.ts";

/** A record may have many events, so a held event does not list all of them. */
const MAX_OTHER_EVENTS = 10;

/** The other events of an event's transaction: first the events that run too, then the earliest. */
export function otherEventsOf(
  record: IdempotencyRecord,
  key: string,
  slotKey: string,
): readonly OtherEvent[] {
  const self = record.slots[slotKey];
  if (self === undefined) return [];
  const otherEvents: OtherEvent[] = [];
  for (const [otherKey, slot] of Object.entries(record.slots)) {
    if (otherKey === slotKey) continue;
    const { name: event, status, state, work, acceptedAt } = slot;
    otherEvents.push({
      eventId: key + otherKey,
      event,
      status,
      state: stateOf(slot),
      reason: state === "held" ? (work?.reason ?? null) : null,
      amount: amountOf(slot),
      acceptedAt,
      runsToo: runsBeside(self, slot),
    });
  }
  return otherEvents
    .sort((a, b) => Number(b.runsToo) - Number(a.runsToo) || a.acceptedAt - b.acceptedAt)
    .slice(0, MAX_OTHER_EVENTS);
}

/**
 * True if two events of a transaction both count as its outcome. An event of rank 0, such as a PENDING, comes before the outcome.
 */
function runsBeside(self: Slot, { state, status, rank }: Slot): boolean {
  if (state !== "done" && state !== "waiting" && state !== "running") return false;
  return status === self.status || (rank !== 0 && self.rank !== 0);
}

/** The amount of an event, preferably as its own delivery gave it. */
export function amountOf({ amounts, work, kept }: Slot): string | null {
  const arrivedBy = (work ?? kept)?.delivery.arrivedBy;
  const deliveredAmount = arrivedBy === undefined ? undefined : amounts[arrivedBy];
  return deliveredAmount ?? Object.values(amounts)[0] ?? null;
}

/**
 * The revision of an event that is held, or that can be run again; null for any other event. It depends on the event, and on the
 * other events of the record that run too. Copies, and decisions about events that never ran, do not change it.
 */
export function revisionOf(record: IdempotencyRecord, key: string, slotKey: string): string | null {
  const slot = record.slots[slotKey];
  const isHeld = slot?.state === "held" && slot.work !== null;
  if (slot === undefined || (!isHeld && slot.kept === undefined)) return null;
  const { reason = slot.state, detail = null, heldAt = null } = slot.work ?? {};
  const otherOutcomes = otherEventsOf(record, key, slotKey)
    .filter(({ runsToo }) => runsToo)
    .map(({ eventId, amount }) => [eventId, amount]);
  return hashOf([JSON.stringify([reason, detail, heldAt, slot.replays, amountOf(slot), otherOutcomes])], 16);
}
