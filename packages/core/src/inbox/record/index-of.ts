import type { FlowName } from "../../protocol/events.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import { isDigest } from "./digest.ts";
import { type IdempotencyRecord, isFinished, type Slot } from "./record.ts";
import { referenceIdOf } from "./reference.ts";
import { dueOf } from "./schedule.ts";

/** Where an event stands, as it is counted and listed: `retrying` waits for another try, `done` is any end. */
export type EventState = "waiting" | "retrying" | "running" | "held" | "done";

/** One event at a glance. Texts are at most 256 bytes long, and have no NUL and no half of a character. */
export interface EventSummary {
  /** Names the event: 48 hex digits. */
  readonly eventId: string;
  /** Where it stands. */
  readonly state: EventState;
  /** Why it is held; null otherwise. */
  readonly reason: HeldReason | null;
  readonly flow: FlowName;
  /** As the key resolver named it; empty where keys are fixed. */
  readonly tenant: string;
  /** `payTxnId` or `idempotency_key`; for a body without a certain reading, a hash of it. */
  readonly id: string;
  /** The event's name; empty for a body without a certain reading. */
  readonly event: string;
  /** The payment's status; empty in the connect flow. */
  readonly status: string;
  /** The merchant's reference of a payment; null where there is none, or where the inbox no longer knows it. */
  readonly referenceId: string | null;
  /** When it was accepted: milliseconds since the epoch, on the store's clock. Never changes. */
  readonly acceptedAt: number;
}

/** What a store can find an event by. */
export interface EventLabels extends EventSummary {
  /** Ids and references of each reading of an entry that has several; empty otherwise, and where it is done. */
  readonly foundBy: readonly string[];
}

/** What a store must be able to search a record by. */
export interface RecordIndex {
  /** Null: nobody has to look at it. */
  readonly dueAt: number | null;
  /** How far away `dueAt` was when it was written. */
  readonly dueInMs: number;
  /** When it may be forgotten; null while anything in it is unfinished or held. */
  readonly expiresAt: number | null;
  readonly events: readonly EventLabels[];
}

/** The index of a record. */
export function indexOf(key: string, record: IdempotencyRecord): RecordIndex {
  const due = dueOf(record);
  const events: EventLabels[] = [];
  for (const slotKey in record.slots) {
    const slot = record.slots[slotKey];
    if (slot !== undefined) events.push(labelsOf(key + slotKey, record, slot));
  }
  return {
    dueAt: due?.at ?? null,
    dueInMs: due?.inMs ?? 0,
    expiresAt: isFinished(record) ? record.expiresAt : null,
    events,
  };
}

function labelsOf(eventId: string, record: IdempotencyRecord, slot: Slot): EventLabels {
  const { flow, tenant, id } = record;
  const { work } = slot;
  const referenceId = referenceOf(record, slot);
  return {
    eventId,
    state: stateOf(slot),
    reason: slot.state === "held" ? (work?.reason ?? null) : null,
    flow,
    tenant: label(tenant),
    id: label(id),
    event: label(slot.name),
    status: label(slot.status),
    referenceId: referenceId === null ? null : label(referenceId),
    acceptedAt: slot.acceptedAt,
    foundBy: work?.foundBy?.map(label) ?? NOTHING,
  };
}

const NOTHING: readonly string[] = [];

/** Of a finished event, the facts that it was compared by say it, unless they were kept as digests. */
export function referenceOf({ identity }: IdempotencyRecord, { work, verdict }: Slot): string | null {
  if (work !== null) return referenceIdOf(work.delivery, verdict);
  const { referenceId } = identity;
  return verdict !== "run" || referenceId === undefined || isDigest(referenceId) ? null : referenceId;
}

/** Where an event stands, as it is counted and listed. */
function stateOf({ state, work }: Slot): EventState {
  switch (state) {
    case "waiting":
      return work !== null && wasTried(work.steps) ? "retrying" : "waiting";
    case "running":
    case "held":
      return state;
    default:
      return "done";
  }
}

function wasTried(steps: Readonly<Record<string, unknown>>): boolean {
  for (const _ in steps) return true;
  return false;
}

const LABEL_BYTES = 256;
/** All that a database can refuse, or a limit in bytes could cut, is outside of this. */
const PLAIN = /^[\x20-\x7e]{0,256}$/;

/** A text as a label: cut at 256 bytes, between two characters, and without what a database may refuse. */
export function label(text: string): string {
  if (PLAIN.test(text)) return text;
  const clean = text.replace(/\0|\p{Surrogate}/gu, "\uFFFD");
  const bytes = Buffer.from(clean);
  if (bytes.byteLength <= LABEL_BYTES) return clean;
  let end = LABEL_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end).toString();
}
