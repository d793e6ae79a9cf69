import type { IdempotencyRecord, Slot } from "./record.ts";

/** When somebody has to look at a record next. */
export interface Due {
  /** On the store's clock. */
  readonly at: number;
  /** How far away that was when it was written. */
  readonly inMs: number;
}

/** Clocks are no further apart than this. */
const CLOCKS_APART_MS = 5_000;

/** Whether a time has come that was `inMs` away when it was set. One that is further away by now was set by a wrong clock. */
export function hasCome(at: number, inMs: number, now: number): boolean {
  return at <= now || at - now > inMs + CLOCKS_APART_MS;
}

/** Waits for a run, or for its onHeld handlers. */
function waits(slot: Slot): boolean {
  return slot.state === "waiting" || (slot.state === "held" && !slot.told);
}

/** When somebody has to look at the record next; null: never. Under a lease that is its end and nothing else. */
export function dueOf({ lease, slots }: IdempotencyRecord): Due | null {
  if (lease !== null) return { at: lease.until, inMs: lease.lengthMs };
  let due: Due | null = null;
  for (const key in slots) {
    const slot = slots[key];
    if (slot === undefined || slot.work === null || !waits(slot)) continue;
    const { dueAt, dueInMs } = slot.work;
    if (due === null || dueAt < due.at) due = { at: dueAt, inMs: dueInMs };
  }
  return due;
}

/** The slot that runs next: to run before to tell, then PENDING before what follows it, then the older one. */
export function nextSlot({ slots }: IdempotencyRecord, now: number): string | null {
  let next: string | null = null;
  for (const key in slots) {
    const slot = slots[key];
    if (slot === undefined || slot.work === null || !waits(slot)) continue;
    if (!hasCome(slot.work.dueAt, slot.work.dueInMs, now)) continue;
    const before = next === null ? undefined : slots[next];
    if (before === undefined || isBefore(slot, before)) next = key;
  }
  return next;
}

function isBefore(a: Slot, b: Slot): boolean {
  if (a.state !== b.state) return a.state === "waiting";
  if (a.status !== b.status && (a.status === "PENDING" || b.status === "PENDING")) {
    return a.status === "PENDING";
  }
  return a.acceptedAt < b.acceptedAt;
}
