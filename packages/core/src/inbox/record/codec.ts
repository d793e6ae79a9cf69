/**
 * Records as texts: a sign for the format, then one JSON text. The shapes below define the format completely. Fields are written
 * in the order in which they appear here.
 */

import { type FlowName, isFlowName } from "../../protocol/events.ts";
import { describeError } from "../../protocol/foreign-error.ts";
import { type GivenUp, HELD_REASONS, type HeldReason } from "../../protocol/held-reasons.ts";
import type { SlotState, StoredDelivery } from "./event.ts";
import type { HandlerState } from "./handler-state.ts";
import {
  type EndedHistory,
  type HistoryEntry,
  type IdempotencyRecord,
  isUnfinished,
  MAX_TRACE,
  type OpenWork,
  type RecordLease,
  type ReplayData,
  type Slot,
} from "./record.ts";
import {
  bytes,
  count,
  flag,
  listOf,
  Misshapen,
  mapOf,
  objectOf,
  oneOf,
  optional,
  orNull,
  type Shape,
  text,
  time,
  unimportant,
  yes,
} from "./shape.ts";

/** The format in which texts are written, and the only one that is read. */
const FORMAT = "4";
const MAX_KEY_ID = 64;
/** The sign of a text that is sealed. The id of its key follows, a colon, and the base64 of what is sealed. */
export const SEALED = "S";
/** Follows the id of the key in the text of a record whose labels are in no list. */
const UNLISTED = "~";

/** A process of another version may have a flow that this one does not know. */
const FLOW: Shape<FlowName> = {
  write: (flow) => flow,
  read: (json) => {
    if (!isFlowName(json)) throw new Misshapen("is not the name of a flow");
    return json;
  },
};

const DELIVERY: Shape<StoredDelivery> = objectOf<StoredDelivery>({
  flow: FLOW,
  tenant: text,
  arrivedBy: oneOf<StoredDelivery["arrivedBy"]>({ callback: true, lookup: true, webhook: true }),
  content: bytes,
  signature: orNull(text),
  keyId: orNull(text),
  receivedAt: time,
  headers: optional(mapOf(text)),
  covered: optional(listOf(text)),
  signedAt: optional(time),
  perhapsUnwanted: optional(yes),
  merchantId: optional(text),
});

const HELD_REASON = oneOf<HeldReason>(HELD_REASONS);
const TEXTS = listOf(text);

const HANDLER_STATE = objectOf<HandlerState>({
  attempts: count,
  state: oneOf<HandlerState["state"]>({ started: true, done: true, failed: true, "given-up": true }),
  dueAt: time,
  delayWhenWrittenMs: time,
  error: orNull(text),
  reason: orNull(oneOf<GivenUp>({ exhausted: true, rejected: true, crashed: true })),
  skipped: optional(count),
});

const HISTORY = listOf(
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

const WORK = objectOf<OpenWork>({
  delivery: DELIVERY,
  retentionMs: time,
  reason: orNull(HELD_REASON),
  detail: orNull(text),
  heldAt: time,
  dueAt: time,
  delayWhenWrittenMs: time,
  begunEarlyAt: orNull(time),
  handlerStates: mapOf(HANDLER_STATE),
  onlyHandlers: orNull(TEXTS),
  evenIfExpired: flag,
  previousStatus: orNull(text),
  previousAmount: orNull(text),
  history: HISTORY as Shape<HistoryEntry[]>,
  untriedHandlers: optional(TEXTS),
  foundBy: optional(TEXTS),
  repeatEffects: optional(yes),
  copies: optional(count),
  lastCopyAt: optional(time),
  patient: optional(yes),
  keepMs: optional(time),
  trace: unimportant(MAX_TRACE),
});

const SLOT = objectOf<Slot>({
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
  onHeldDone: flag,
  work: orNull(WORK),
  past: optional(objectOf<EndedHistory>({ history: HISTORY, copies: count, lastCopyAt: orNull(time) })),
  kept: optional(
    objectOf<ReplayData>({
      delivery: DELIVERY,
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

const RECORD = objectOf<IdempotencyRecord>({
  flow: FLOW,
  tenant: text,
  id: text,
  statusSlot: orNull(text),
  isClosed: flag,
  fixedFacts: mapOf(text),
  signedAt: time,
  expiresAt: time,
  slots: mapOf(SLOT, /^[0-9a-f]{16}$/),
  lease: orNull(objectOf<RecordLease>({ slot: text, token: text, until: time, lengthWhenWrittenMs: time })),
  claims: optional(mapOf(text)),
});

/** A record that this process cannot read, and why. Such a record is left alone. */
export interface Unreadable {
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
export function isUnreadable(record: IdempotencyRecord | Unreadable): record is Unreadable {
  return "unreadable" in record;
}

/** Writes a record as a text that every database takes. */
export function encodeRecord(record: IdempotencyRecord | SealedRecord): string {
  return "sealed" in record ? record.sealed : FORMAT + JSON.stringify(RECORD.write(record));
}

/** The reverse of {@link encodeRecord}. It takes any text, and never throws. */
export function decodeRecord(given: string): IdempotencyRecord | Unreadable {
  if (!given.startsWith(FORMAT)) {
    const sealed = sealedIn(given);
    if (sealed !== null) return lockedBy(sealed, "and this inbox has no `seal`");
    const format = JSON.stringify(given.slice(0, 1));
    return { unreadable: `its format is ${format}: another version of Payhooks wrote it` };
  }
  try {
    const record = RECORD.read(JSON.parse(given.slice(FORMAT.length)));
    check(record);
    return record;
  } catch (error) {
    const why = error instanceof Misshapen ? error.message : describeError(error);
    return { unreadable: `its text is damaged: ${why}` };
  }
}

function sealedIn(text: string): SealedText | null {
  const end = text.indexOf(":");
  if (end < 0 || !text.startsWith(SEALED)) return null;
  const isUnlisted = text.startsWith(UNLISTED, end - UNLISTED.length);
  const keyId = text.slice(SEALED.length, isUnlisted ? end - UNLISTED.length : end).slice(0, MAX_KEY_ID);
  return { keyId, isUnlisted, base64: text.slice(end + 1), text };
}

/** The sealed text of a record, as it is written without the labels of its events. */
export function unlisted(sealed: string): string {
  const end = sealed.indexOf(":");
  return sealed.slice(0, end) + UNLISTED + sealed.slice(end);
}

/** A record whose key is missing. It waits for a process that has it. */
export function lockedBy(sealed: SealedText, why: string): Unreadable {
  const name = JSON.stringify(sealed.keyId);
  return { unreadable: `it is sealed with the key ${name}, ${why}`, sealed, code: "ERR_SEAL_KEY_MISSING" };
}

/** A record whose seal is broken. */
export function damagedSeal(sealed: SealedText): Unreadable {
  const name = JSON.stringify(sealed.keyId);
  return { unreadable: `its seal with the key ${name} is broken`, sealed, code: "ERR_SEAL_BROKEN" };
}

/** Fields that must fit each other. A slot has its work until the event is finished, and not afterwards. */
function check({ slots, statusSlot, lease }: IdempotencyRecord): void {
  if (statusSlot !== null && !Object.hasOwn(slots, statusSlot))
    throw new Misshapen("statusSlot names no slot");
  // A side record may have a lease, and has no slots.
  if (lease !== null && lease.slot !== "" && !Object.hasOwn(slots, lease.slot)) {
    throw new Misshapen("lease names no slot");
  }
  for (const slot of Object.values(slots)) checkState(slot);
}

function checkState(slot: Slot): void {
  if (isUnfinished(slot) !== (slot.work !== null))
    throw new Misshapen(`work does not fit the state ${slot.state}`);
  if (slot.kept !== undefined && slot.work !== null)
    throw new Misshapen("kept is of an event that has ended");
  if (slot.state === "held" && slot.work?.reason === null)
    throw new Misshapen("reason of a held event is missing");
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
