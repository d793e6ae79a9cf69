import type { Step } from "./lease.ts";
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

/**
 * A time that is further away than it was when it was written comes from a clock that was ahead, and has been corrected
 * since: it is as far away now as it was then. So a lease is not taken from a process that goes on renewing it, and a retry
 * waits for no longer than its delay.
 */
function pulledBack(at: number, inMs: number, now: number): number {
  return at - now > inMs + CLOCKS_APART_MS ? now + inMs : at;
}

/** Pulls back every time of the record that a clock which was ahead has written. */
export function pullBackTimes({ lease, slots }: IdempotencyRecord, now: number): void {
  if (lease !== null) lease.until = pulledBack(lease.until, lease.lengthMs, now);
  for (const key in slots) {
    const work = slots[key]?.work ?? null;
    if (work === null) continue;
    work.dueAt = pulledBack(work.dueAt, work.dueInMs, now);
    if (work.forcedAt !== null) work.forcedAt = pulledBack(work.forcedAt, 0, now);
    for (const name in work.steps) {
      const step = work.steps[name];
      if (step !== undefined) work.steps[name] = stepPulledBack(step, now);
    }
  }
}

function stepPulledBack(step: Step, now: number): Step {
  const dueAt = pulledBack(step.dueAt, step.dueInMs, now);
  return dueAt === step.dueAt ? step : { ...step, dueAt };
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
    if (slot.work.dueAt > now) continue;
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
