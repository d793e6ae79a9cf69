/**
 * Records as texts: a sign for the format, then one JSON text. The shapes below define the format completely. Fields are written
 * in the order in which they appear here.
 */

import { type FlowName, isFlowName } from "../../protocol/events.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { type GiveUpReason, HELD_REASONS, type HeldReason } from "../../protocol/held-reasons.ts";
import type { SlotState, StoredDelivery } from "./event.ts";
import type { HandlerState } from "./handler-state.ts";
import {
  type EndedHistory,
  type HistoryEntry,
  type IdempotencyRecord,
  isUnfinished,
  MAX_TRACE_CHARS,
  type OpenWork,
  type RecordLease,
  type ReplayData,
  type Slot,
} from "./record.ts";
import {
  bytes,
  count,
  flag,
  lenientText,
  listOf,
  mapOf,
  objectOf,
  oneOf,
  optional,
  orNull,
  type Shape,
  ShapeError,
  text,
  time,
  yes,
} from "./shape.ts";

/** The format in which texts are written, and the only one that is read. */
const RECORD_FORMAT = "4";
const MAX_KEY_ID_CHARS = 64;
/** The sign of a text that is sealed. The id of its key follows, a colon, and the base64 of what is sealed. */
export const SEALED_PREFIX = "S";
/** Follows the id of the key in the text of a record whose labels are not indexed yet. */
const UNLISTED_MARK = "~";

/** A process of another version may have a flow that this one does not know. */
const FLOW_SHAPE: Shape<FlowName> = {
  write: (flow) => flow,
  read: (json) => {
    if (!isFlowName(json)) throw new ShapeError("is not the name of a flow");
    return json;
  },
};

const DELIVERY_SHAPE: Shape<StoredDelivery> = objectOf<StoredDelivery>({
  flow: FLOW_SHAPE,
  tenant: text,
  arrivedBy: oneOf<StoredDelivery["arrivedBy"]>({ callback: true, lookup: true, webhook: true }),
  content: bytes,
  signature: orNull(text),
  keyId: orNull(text),
  receivedAt: time,
  headers: optional(mapOf(text)),
  signedHeaders: optional(listOf(text)),
  signedAt: optional(time),
  mayBeUnhandled: optional(yes),
  merchantId: optional(text),
});

const HELD_REASON_SHAPE = oneOf<HeldReason>(HELD_REASONS);
const TEXT_LIST_SHAPE = listOf(text);

const HANDLER_STATE_SHAPE = objectOf<HandlerState>({
  attempts: count,
  state: oneOf<HandlerState["state"]>({ started: true, done: true, failed: true, "given-up": true }),
  dueAt: time,
  delayWhenWrittenMs: time,
  error: orNull(text),
  reason: orNull(oneOf<GiveUpReason>({ exhausted: true, rejected: true, crashed: true })),
  skipped: optional(count),
});

const HISTORY_SHAPE = listOf(
  objectOf<HistoryEntry>({
    at: time,
    what: text,
    handler: optional(text),
    attempt: optional(count),
    error: optional(text),
    by: optional(text),
    note: optional(text),
    skipped: optional(count),
  }),
);

const WORK_SHAPE = objectOf<OpenWork>({
  delivery: DELIVERY_SHAPE,
  retentionMs: time,
  reason: orNull(HELD_REASON_SHAPE),
  detail: orNull(text),
  heldAt: time,
  dueAt: time,
  originalDelayMs: time,
  begunEarlyAt: orNull(time),
  handlerStates: mapOf(HANDLER_STATE_SHAPE),
  onlyHandlers: orNull(TEXT_LIST_SHAPE),
  evenIfExpired: flag,
  previousStatus: orNull(text),
  previousAmount: orNull(text),
  history: HISTORY_SHAPE as Shape<HistoryEntry[]>,
  untriedHandlers: optional(TEXT_LIST_SHAPE),
  foundBy: optional(TEXT_LIST_SHAPE),
  repeatEffects: optional(yes),
  copies: optional(count),
  lastCopyAt: optional(time),
  patient: optional(yes),
  keepMs: optional(time),
  trace: lenientText(MAX_TRACE_CHARS),
});

const SLOT_SHAPE = objectOf<Slot>({
  name: text,
  status: text,
  amounts: mapOf(text),
  rank: orNull(count),
  referenceId: orNull(text),
  verdict: oneOf<Slot["verdict"]>({ run: true, ...HELD_REASONS }),
  state: oneOf<SlotState>({
    waiting: true,
    running: true,
    done: true,
    held: true,
    stale: true,
    discarded: true,
  }),
  replays: count,
  acceptedAt: time,
  runToken: orNull(text),
  isOnHeldDone: flag,
  work: orNull(WORK_SHAPE),
  past: optional(objectOf<EndedHistory>({ history: HISTORY_SHAPE, copies: count, lastCopyAt: orNull(time) })),
  kept: optional(
    objectOf<ReplayData>({
      delivery: DELIVERY_SHAPE,
      retentionMs: time,
      previousStatus: orNull(text),
      previousAmount: orNull(text),
      keepMs: time,
    }),
  ),
  decisionToken: optional(text),
  erasedAt: optional(time),
  subject: optional(objectOf<NonNullable<Slot["subject"]>>({ key: text, at: time, hadTurn: optional(yes) })),
});

const RECORD_SHAPE = objectOf<IdempotencyRecord>({
  flow: FLOW_SHAPE,
  tenant: text,
  id: text,
  statusSlot: orNull(text),
  isClosed: flag,
  fixedFacts: mapOf(text),
  signedAt: time,
  expiresAt: time,
  slots: mapOf(SLOT_SHAPE, /^[0-9a-f]{16}$/),
  lease: orNull(objectOf<RecordLease>({ slot: text, token: text, until: time, originalLengthMs: time })),
  claims: optional(mapOf(text)),
});

/** A record that this process cannot read, and why. Such a record is left alone. */
export interface UnreadableRecord {
  readonly unreadable: string;
  /** The sealed text, if the seal is the reason. */
  readonly sealed?: SealedText;
  /** The fault of its seal. */
  readonly code?: "ERR_SEAL_KEY_MISSING" | "ERR_SEAL_BROKEN";
}

/** A sealed text of a store. */
export interface SealedText {
  readonly keyId: string;
  /** True if the store's lists lack the events of this record. The next write has to add them. */
  readonly isUnlisted: boolean;
  readonly base64: string;
  /** The whole text, as it is stored. */
  readonly text: string;
}

/** A record, with the text that is written instead of it. */
export interface SealedRecord extends IdempotencyRecord {
  readonly sealed: string;
}

/** True if the record could not be read. */
export function isUnreadable(record: IdempotencyRecord | UnreadableRecord): record is UnreadableRecord {
  return "unreadable" in record;
}

/** The record that a store has found; null if there is none, or if it cannot be read. */
export function readableRecord(
  found: { readonly record: IdempotencyRecord | UnreadableRecord } | null | undefined,
): IdempotencyRecord | null {
  return found == null || isUnreadable(found.record) ? null : found.record;
}

/** Writes a record as a text that every database takes. */
export function encodeRecord(record: IdempotencyRecord | SealedRecord): string {
  return "sealed" in record ? record.sealed : RECORD_FORMAT + JSON.stringify(RECORD_SHAPE.write(record));
}

/** The reverse of {@link encodeRecord}. It takes any text, and never throws. */
export function decodeRecord(recordText: string): IdempotencyRecord | UnreadableRecord {
  if (!recordText.startsWith(RECORD_FORMAT)) {
    const sealed = parseSealedText(recordText);
    if (sealed !== null) return lockedRecord(sealed, "and this inbox has no `seal`");
    const format = JSON.stringify(recordText.slice(0, 1));
    return { unreadable: `its format is ${format}: another version of Payhooks wrote it` };
  }
  try {
    const record = RECORD_SHAPE.read(JSON.parse(recordText.slice(RECORD_FORMAT.length)));
    checkRecord(record);
    return record;
  } catch (error) {
    const fault = error instanceof ShapeError ? error.message : describeError(error);
    return { unreadable: `its text is damaged: ${fault}` };
  }
}

function parseSealedText(text: string): SealedText | null {
  const end = text.indexOf(":");
  if (end < 0 || !text.startsWith(SEALED_PREFIX)) return null;
  const isUnlisted = text.startsWith(UNLISTED_MARK, end - UNLISTED_MARK.length);
  const keyId = text
    .slice(SEALED_PREFIX.length, isUnlisted ? end - UNLISTED_MARK.length : end)
    .slice(0, MAX_KEY_ID_CHARS);
  return { keyId, isUnlisted, base64: text.slice(end + 1), text };
}

/** The sealed text of a record, as it is written without the labels of its events. */
export function markUnlisted(sealed: string): string {
  const end = sealed.indexOf(":");
  return sealed.slice(0, end) + UNLISTED_MARK + sealed.slice(end);
}

/** A record whose key is missing. It waits for a process that has it. */
export function lockedRecord(sealed: SealedText, reason: string): UnreadableRecord {
  const name = JSON.stringify(sealed.keyId);
  return { unreadable: `it is sealed with the key ${name}, ${reason}`, sealed, code: "ERR_SEAL_KEY_MISSING" };
}

/** A record whose seal is broken. */
export function brokenSealRecord(sealed: SealedText): UnreadableRecord {
  const name = JSON.stringify(sealed.keyId);
  return { unreadable: `its seal with the key ${name} is broken`, sealed, code: "ERR_SEAL_BROKEN" };
}

/** Fields that must fit each other. A slot has its work until the event is finished, and not afterwards. */
function checkRecord({ slots, statusSlot, lease }: IdempotencyRecord): void {
  if (statusSlot !== null && !Object.hasOwn(slots, statusSlot))
    throw new ShapeError("statusSlot names no slot");
  // A side record may have a lease, and has no slots.
  if (lease !== null && lease.slot !== "" && !Object.hasOwn(slots, lease.slot)) {
    throw new ShapeError("lease names no slot");
  }
  for (const slot of Object.values(slots)) checkSlot(slot);
}

function checkSlot(slot: Slot): void {
  if (isUnfinished(slot) !== (slot.work !== null))
    throw new ShapeError(`work does not fit the state ${slot.state}`);
  if (slot.kept !== undefined && slot.work !== null)
    throw new ShapeError("kept is of an event that has ended");
  if (slot.state === "held" && slot.work?.reason === null)
    throw new ShapeError("reason of a held event is missing");
}

/** A copy that can be changed without changing the original. Parts that nothing ever changes are shared. */
export function copyRecord(record: IdempotencyRecord): IdempotencyRecord {
  const slots: Record<string, Slot> = {};
  for (const [key, slot] of Object.entries(record.slots)) {
    const { work } = slot;
    slots[key] = {
      ...slot,
      work:
        work === null
          ? null
          : { ...work, handlerStates: { ...work.handlerStates }, history: [...work.history] },
    };
  }
  return { ...record, lease: record.lease === null ? null : { ...record.lease }, slots };
}
