import type { EventFacts } from "../../notices/notice.ts";
import type { FlowName } from "../../protocol/events.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";

/** Where a slot stands. `stale` and `discarded` are ends, like `done`. */
export type SlotState = "waiting" | "running" | "done" | "held" | "stale" | "discarded";

/** A delivery as it is stored until it is done: what a replay parses again. */
export interface StoredDelivery {
  readonly flow: FlowName;
  readonly tenant: string;
  readonly source: "callback" | "lookup" | "webhook";
  /** The exact bytes that arrived. */
  readonly rawBody: Uint8Array;
  /** The header fields that the flow needs; for payments none. */
  readonly headers: Readonly<Record<string, string>>;
  /** Fingerprint of the key that verified it; null when it was not signed (`unsafeAllowUnsigned`, look-ups). */
  readonly keyId: string | null;
  /** Milliseconds since the epoch, on the receiver's clock. */
  readonly receivedAt: number;
  /** The body is not what arrived but the reading of it that `payments.confirm` chose. */
  readonly confirmed?: true;
}

/** A verified delivery, with everything that the table of deduplication (docs/concepts/deduplication.md) decides by. */
export interface VerifiedEvent {
  /** The record's key: 32 hex digits, a hash of tenant, flow and id. */
  readonly key: string;
  /** The normal run's slot in the record: 16 hex digits, a hash of event and status. `key + slot` is its eventId. */
  readonly slot: string;
  /** The slot for these very facts, used when they contradict the record. */
  readonly variantSlot: () => string;
  /** `payTxnId` or `idempotency_key`; for an entry, a hash of what was signed. */
  readonly id: string;
  readonly name: string;
  /** The payment's status; empty in the connect flow. */
  readonly status: string;
  /** 0 may be followed by 1. Null: sets neither rank nor facts. */
  readonly rank: 0 | 1 | null;
  /** Facts that never change between attempts; an absent one is not compared. */
  readonly identity: Readonly<Record<string, string>>;
  /** In one spelling per value, or null where the event has none. */
  readonly amount: string | null;
  /** When the service signed it, in milliseconds since the epoch; null where a malformed body does not say. */
  readonly signedAt: number | null;
  /** False when it was signed outside of the window: only what is already recorded is accepted. */
  readonly fresh: boolean;
  /** A person has said that it is to run although the store may have forgotten an earlier run of it. */
  readonly evenIfExpired?: true;
  /** A finished record is kept until max(now, greatest signedAt) + this, in milliseconds. */
  readonly retentionMs: number;
  /** Run it, or hold it for a reason that was found before the table is asked. */
  readonly verdict: "run" | HeldReason;
  /** What is wrong, when the verdict is to hold it. */
  readonly detail: string | null;
  /** With `oneSuccessPerReference`: the key of the one-key step that claims the reference for this id. */
  readonly referenceKey: string | null;
  /** The merchant's reference, by which the event can be found; left out where nobody has read it yet. */
  readonly referenceId?: string | null;
  /** Where it has several readings: the ids and references of each, by which it can be found. */
  readonly foundBy?: readonly string[];
  readonly delivery: StoredDelivery;
}

const EVENT_ID = /^[0-9a-f]{48}$/;

/** Whether a text can be an eventId. */
export function isEventId(text: unknown): text is string {
  return typeof text === "string" && EVENT_ID.test(text);
}

/** The record's key in an eventId. */
export function recordKeyOf(eventId: string): string {
  return eventId.slice(0, 32);
}

/** The slot's key in an eventId. */
export function slotKeyOf(eventId: string): string {
  return eventId.slice(32);
}

/** What became of a delivery in the table of deduplication. */
export type AcceptOutcome = "new" | "progress" | "duplicate" | "stale" | "held" | "expired";

/** What became of an event that was offered to the inbox. */
export interface Accepted {
  readonly outcome: AcceptOutcome;
  /** The record's key and the slot's. With the outcomes `stale` and `expired` there may be no such event. */
  readonly eventId: string;
  /** Why it is held, for the outcome `held` and for copies of a held event. */
  readonly reason: HeldReason | null;
  /** What is wrong, in words, where there is a reason. Names fields, but not their values. */
  readonly detail: string | null;
  /** The amount that was known before, when this delivery changed it (outcome `progress`, or another source). */
  readonly previousAmount: string | null;
  /** This process has begun to run it. */
  readonly begun: boolean;
  /** PENDING events that waited, and will not run since this one is terminal. */
  readonly overtaken: readonly EventFacts[];
  /**
   * With the outcome `expired`: the inbox was too small to keep its records for the whole window, and no longer knows
   * events that were signed before this time.
   */
  readonly signedBefore?: number;
  /** With {@link AcceptOptions.handle}: what became of the event in the run that this call began, or found. */
  readonly handled?: Promise<RunReport>;
}

/** What became of one event that was run on the spot. */
export interface RunReport {
  /** The event's state afterwards; `running` when another run has it; null when there is no such event. */
  readonly state: SlotState | null;
  /** Whether this call ran it. */
  readonly ran: boolean;
}
