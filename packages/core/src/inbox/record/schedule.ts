import type { HandlerState } from "./handler-state.ts";
import type { Lane } from "./lane.ts";
import type { IdempotencyRecord, Slot } from "./record.ts";

/** When a record is due. */
export interface DueTime {
  /** On the store's clock. */
  readonly at: number;
  /** How far away that time was when it was written. */
  readonly originalDelayMs: number;
  /** The lane of the event that is due then, or whose lease ends then. */
  readonly lane: Lane;
}

/** Clocks are assumed to be no further apart than this. */
const MAX_CLOCK_SKEW_MS = 5_000;

/**
 * Corrects a time that a wrong clock has written. If the time is further away now than when it was written, the clock was ahead
 * then, and was corrected since. The corrected time is as far away from now as it was from the time of writing. So a process
 * that renews its lease keeps it, and no retry waits longer than its delay.
 */
export function pullBackTime(at: number, originalDelayMs: number, now: number): number {
  return at - now > originalDelayMs + MAX_CLOCK_SKEW_MS ? now + originalDelayMs : at;
}

/** Corrects every time in the record that was written by a clock that was ahead. */
export function pullBackRecordTimes({ lease, slots }: IdempotencyRecord, now: number): void {
  if (lease !== null) lease.until = pullBackTime(lease.until, lease.originalLengthMs, now);
  for (const key in slots) {
    const work = slots[key]?.work ?? null;
    if (work === null) continue;
    work.dueAt = pullBackTime(work.dueAt, work.originalDelayMs, now);
    if (work.begunEarlyAt !== null) work.begunEarlyAt = pullBackTime(work.begunEarlyAt, 0, now);
    for (const name in work.handlerStates) {
      const state = work.handlerStates[name];
      if (state !== undefined) work.handlerStates[name] = pullBackState(state, now);
    }
  }
}

function pullBackState(state: HandlerState, now: number): HandlerState {
  const dueAt = pullBackTime(state.dueAt, state.delayWhenWrittenMs, now);
  return dueAt === state.dueAt ? state : { ...state, dueAt };
}

/** True if the slot waits for a run, or for its onHeld handlers. */
function isWaitingForRun(slot: Slot): boolean {
  return slot.state === "waiting" || (slot.state === "held" && !slot.isOnHeldDone);
}

/** The lane of an event. A canary has none, and waits with the usual ones. */
function laneOf(slot: Slot | undefined): Lane {
  return slot?.work?.patient === true ? "patient" : "usual";
}

/** When the record is due; null for never. While there is a lease, this is the end of the lease. */
export function dueTimeOf({ lease, slots }: IdempotencyRecord): DueTime | null {
  if (lease !== null)
    return {
      at: lease.until,
      originalDelayMs: lease.originalLengthMs,
      lane: laneOf(slots[lease.slot]),
    };
  let dueTime: DueTime | null = null;
  for (const key in slots) {
    const slot = slots[key];
    if (slot === undefined || slot.work === null || !isWaitingForRun(slot)) continue;
    const { dueAt, originalDelayMs } = slot.work;
    if (dueTime === null || dueAt < dueTime.at) dueTime = { at: dueAt, originalDelayMs, lane: laneOf(slot) };
  }
  return dueTime;
}

/**
 * The slot that runs next. Events to run come before held events whose onHeld handlers are to be called, a lower rank before a
 * higher rank, and older events before newer events.
 */
export function findNextSlot({ slots }: IdempotencyRecord, now: number): string | null {
  let next: string | null = null;
  for (const key in slots) {
    const slot = slots[key];
    if (slot === undefined || slot.work === null || !isWaitingForRun(slot)) continue;
    if (slot.work.dueAt > now) continue;
    const before = next === null ? undefined : slots[next];
    if (before === undefined || isBefore(slot, before)) next = key;
  }
  return next;
}

function isBefore(a: Slot, b: Slot): boolean {
  if (a.state !== b.state) return a.state === "waiting";
  const [rank, other] = [a.rank ?? 1, b.rank ?? 1];
  if (rank !== other) return rank < other;
  return a.acceptedAt < b.acceptedAt;
}

const FAILED_RUN_MIN_DELAY_MS = 5_000;
const FAILED_RUN_MAX_DELAY_MS = 300_000;

/** How long an event waits whose run failed outside of its handlers: at first 5 s, then twice its last delay, up to 5 min. */
export function failedRunDelayMs(lastDelayMs: number): number {
  return Math.min(Math.max(FAILED_RUN_MIN_DELAY_MS, 2 * lastDelayMs), FAILED_RUN_MAX_DELAY_MS);
}
