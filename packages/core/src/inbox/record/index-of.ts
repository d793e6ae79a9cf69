import type { FlowName } from "../../events.ts";
import type { HeldReason } from "../inbox.ts";
import { type IdempotencyRecord, isFinished, type Slot } from "./record.ts";
import { referenceIdOf } from "./reference.ts";
import { dueOf } from "./schedule.ts";

/** Where an event stands, as it is counted and listed: `retrying` waits for another try, `done` is any end. */
export type EventState = "waiting" | "retrying" | "running" | "held" | "done";

/** What a store can find an event by. Texts are at most 256 bytes long, and have no NUL and no half of a character. */
export interface EventLabels {
  /** The event's id: the record's key and the slot's. */
  readonly eventId: string;
  readonly state: EventState;
  /** Why it is held; null otherwise. */
  readonly reason: HeldReason | null;
  readonly flow: FlowName;
  readonly tenant: string;
  /** `payTxnId` or `idempotency_key`; for an entry, a hash of what was signed. */
  readonly id: string;
  readonly event: string;
  readonly status: string;
  /** Null where the event has none, and where it is done: a store that lists finished events keeps what it had. */
  readonly referenceId: string | null;
  /** When it was accepted, on the store's clock. Never changes. */
  readonly acceptedAt: number;
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

function labelsOf(eventId: string, { flow, tenant, id }: IdempotencyRecord, slot: Slot): EventLabels {
  const { work, verdict } = slot;
  const referenceId = work === null ? null : referenceIdOf(work.delivery, verdict);
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
  };
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
