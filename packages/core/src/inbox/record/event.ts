import type { EventFacts } from "../../notices/notice.ts";
import type { FlowName } from "../../protocol/events.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";

/** The subject of an event, and the time at which the event was signed. */
export interface Subject {
  /** The key of the subject's record. */
  readonly key: string;
  /** The event's signed time, in milliseconds since the epoch. */
  readonly at: number;
}

/** The state of a slot. `stale` and `discarded` are ends, like `done`. */
export type SlotState = "waiting" | "running" | "done" | "held" | "stale" | "discarded";

/**
 * The stored part of a delivery until its event is done: the signed text, not the body's spelling of it. Each run reads it again,
 * by the rules of that day.
 */
export interface StoredDelivery {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly arrivedBy: "callback" | "lookup" | "webhook";
  /**
   * The signed text: of a callback, the canonical string; of a webhook, the bytes of its body. Of a look-up, which is not signed,
   * its fields as JSON.
   */
  readonly content: Uint8Array;
  /** The signature, as it was sent; null if it was not signed. */
  readonly signature: string | null;
  /** The fingerprint of the key that verified it; null if it was not signed (`unsafeAllowUnsigned`, look-ups). */
  readonly keyId: string | null;
  /** Milliseconds since the epoch, on the receiver's clock. */
  readonly receivedAt: number;
  /** Of a source: the header fields that are kept, by their lowercase names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Of a source: the names of the header fields that the signature covers. */
  readonly signedHeaders?: readonly string[];
  /** Of a source: the signed time, in milliseconds since the epoch. Left out if it has none. */
  readonly signedAt?: number;
  /** Of a source: the process that accepted it has no handlers, so it could not check whether the name is wanted. */
  readonly mayBeUnhandled?: true;
  /** The `merchantId` by which a resolver was asked for the keys. Left out if keys are fixed. */
  readonly merchantId?: string;
}

/** A verified delivery, with everything that the table of deduplication (docs/concepts/deduplication.md) needs to decide. */
export interface VerifiedEvent {
  /** The record's key: 32 hex digits, a hash of tenant, flow and id. */
  readonly key: string;
  /** The event's usual slot in the record: 16 hex digits, a hash of event and status. `key + slot` is the eventId. */
  readonly slot: string;
  /** The slot for exactly these facts. It is used if they contradict the record. */
  readonly variantSlot: () => string;
  /** `payTxnId`, `idempotency_key` or the id that a source gives; of an event outside of the table, a hash of what was signed. */
  readonly id: string;
  readonly name: string;
  /** The status of a payment, or the stage of a source; otherwise empty. */
  readonly status: string;
  /**
   * The rank of the status: a higher rank may follow a lower one. Null: the event changes neither the record's status nor its
   * facts.
   */
  readonly rank: number | null;
  /** The rank that is final. Default 1. */
  readonly lastRank?: number;
  /** Facts that never change between deliveries. A fact that is absent is not compared. */
  readonly fixedFacts: Readonly<Record<string, string>>;
  /** The amount in its normal spelling, or null if the event has none. */
  readonly amount: string | null;
  /** When the service signed it, in milliseconds since the epoch; null if a malformed body does not say. */
  readonly signedAt: number | null;
  /** False if it was signed outside of the window. It is then accepted only if it is recorded already. */
  readonly isWithinWindow: boolean;
  /** A person has decided to run it although the store may have forgotten an earlier run. */
  readonly evenIfExpired?: true;
  /** How long a finished record is kept: until max(now, greatest signedAt) + this, in milliseconds. */
  readonly retentionMs: number;
  /** How long the signed text is kept after the event's end. Left out if it is dropped then. */
  readonly keepMs?: number;
  /** `run`, or the reason to hold the event that was found before the table is asked. */
  readonly verdict: "run" | HeldReason;
  /** The fault, if the verdict is a reason to hold the event. */
  readonly detail: string | null;
  /** With `oneSuccessPerReference`: the key of the record that claims the reference for this id. */
  readonly referenceKey: string | null;
  /** The merchant's reference, as a label by which the event is found. Null if it has none, or if its reading is not certain. */
  readonly referenceId: string | null;
  /** If the event has several readings: the ids and references of each, by which it can be found. */
  readonly foundBy?: readonly string[];
  /** The subject, if a later event of it replaces this event. Left out for an event without a subject. */
  readonly subject?: Subject;
  readonly delivery: StoredDelivery;
}

const EVENT_ID_PATTERN = /^[0-9a-f]{48}$/;

/** True if a text can be an eventId. */
export function isEventId(text: unknown): text is string {
  return typeof text === "string" && EVENT_ID_PATTERN.test(text);
}

/** The record's key in an eventId. */
export function recordKeyOf(eventId: string): string {
  return eventId.slice(0, 32);
}

/** The slot's key in an eventId. */
export function slotKeyOf(eventId: string): string {
  return eventId.slice(32);
}

/** The result of a delivery in the table of deduplication. */
export type AcceptOutcome = "new" | "progress" | "duplicate" | "stale" | "held" | "expired";

/** The result for an event that was offered to the inbox. */
export interface AcceptResult {
  readonly outcome: AcceptOutcome;
  /** The record's key and the slot's. With the outcomes `stale` and `expired`, there may be no such event. */
  readonly eventId: string;
  /** Why the event is held. Set for the outcome `held` and for copies of a held event. */
  readonly reason: HeldReason | null;
  /** The fault in words, if there is a reason. It names fields, but not their values. */
  readonly detail: string | null;
  /** The amount that was known before, if this delivery changed it (outcome `progress`, or by another way of arrival). */
  readonly previousAmount: string | null;
  /** True if this process has begun to run it. */
  readonly isBegun: boolean;
  /** Events of earlier statuses (PENDING, or earlier stages of a source) that waited, and will not run because of this event. */
  readonly overtaken: readonly EventFacts[];
  /**
   * With the outcome `expired`: the inbox was too small to keep its records for the whole window. It no longer knows events that
   * were signed before this time.
   */
  readonly signedBefore?: number;
  /** With {@link AcceptOptions.runAtOnce}: the result of the run that this call began, or found. */
  readonly whenHandled?: Promise<RunReport>;
}

/** The answer to a caller who asked for a run of one event. Unlike an outcome, there is one even if the event was not run. */
export interface RunReport {
  /**
   * The event's state afterwards; null if there is no such event. `running` if another run has it, or if this process
   * runs another event of the same record. In the second case the event was not looked at: call again later.
   */
  readonly state: SlotState | null;
  /** True if this call ran it. False if it handed the event back before it called a handler. */
  readonly ran: boolean;
}
