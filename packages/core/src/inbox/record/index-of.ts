import type { EventFacts } from "../../notices/notice.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import { labelOf } from "./label.ts";
import type { Lane } from "./lane.ts";
import { type IdempotencyRecord, isEndState, isFinished, referenceOf, type Slot } from "./record.ts";
import { dueTimeOf } from "./schedule.ts";

/** The state of an event, as it is counted and listed: `retrying` waits for another attempt, `finished` is any end. */
export type EventState = "waiting" | "retrying" | "running" | "held" | "finished";

/** Every state of an event. */
export const EVENT_STATES: Readonly<Record<EventState, true>> = {
  waiting: true,
  retrying: true,
  running: true,
  held: true,
  finished: true,
};

/** One event in a store's lists. Texts over 512 bytes, and texts that a database cannot store, are replaced by their SHA-256. */
export interface EventSummary extends EventFacts {
  readonly state: EventState;
  /** Why it is held; null otherwise. */
  readonly reason: HeldReason | null;
  /** When it was accepted, in milliseconds since the epoch, on the store's clock. It never changes. */
  readonly acceptedAt: number;
}

/** The labels by which a store can list and find an event. */
export interface EventLabels extends EventSummary {
  /** For a held event that has several readings, the ids and references of each. Empty otherwise, and once it is done. */
  readonly foundBy: readonly string[];
}

/** The keys by which a store must be able to find a record. */
export interface RecordIndex {
  /** When the record is due, on the store's clock; null: never. */
  readonly dueAt: number | null;
  /** How far away `dueAt` was when it was written. */
  readonly originalDelayMs: number;
  /** True if a run has a lease on the record. `dueAt` is then the end of the lease. */
  readonly isLeased: boolean;
  /** The lane in which the record waits until then. */
  readonly lane: Lane;
  /** When the record may be forgotten; null while any of its events is unfinished or held. */
  readonly expiresAt: number | null;
  /** All events except erased events, which are found by their ids only. */
  readonly events: readonly EventLabels[];
}

export function indexOf(key: string, record: IdempotencyRecord): RecordIndex {
  const dueTime = dueTimeOf(record);
  const events: EventLabels[] = [];
  for (const slotKey in record.slots) {
    const slot = record.slots[slotKey];
    if (slot !== undefined && slot.erasedAt === undefined) events.push(labelsOf(key + slotKey, record, slot));
  }
  return {
    dueAt: dueTime?.at ?? null,
    originalDelayMs: dueTime?.originalDelayMs ?? 0,
    isLeased: record.lease !== null,
    lane: dueTime?.lane ?? "usual",
    expiresAt: isFinished(record) ? record.expiresAt : null,
    events,
  };
}

function labelsOf(eventId: string, record: IdempotencyRecord, slot: Slot): EventLabels {
  const { flow, tenant, id } = record;
  const { work } = slot;
  const state = stateOf(slot);
  return {
    eventId,
    state: isEndState(state) ? "finished" : state,
    reason: slot.state === "held" ? (work?.reason ?? null) : null,
    flow,
    tenant: labelOf(tenant),
    id: labelOf(id),
    event: labelOf(slot.name),
    status: labelOf(slot.status),
    referenceId: referenceOf(record, slot),
    acceptedAt: slot.acceptedAt,
    foundBy: work?.foundBy?.map(labelOf) ?? NO_LABELS,
  };
}

const NO_LABELS: readonly string[] = [];

/** The state of an event, as it is shown to people. */
export function stateOf({ state, work }: Slot): Slot["state"] | "retrying" {
  return state === "waiting" && work !== null && hasTriedHandler(work.handlerStates) ? "retrying" : state;
}

function hasTriedHandler(handlerStates: Readonly<Record<string, unknown>>): boolean {
  for (const _ in handlerStates) return true;
  return false;
}
