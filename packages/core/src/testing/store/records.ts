/** Records as the engine writes them, made with the engine's own functions. */
import { createHash } from "node:crypto";
import { accept } from "../../inbox/record/accept-into-record.ts";
import { copyRecord } from "../../inbox/record/codec.ts";
import { discard, isMade, replay } from "../../inbox/record/decisions.ts";
import type { VerifiedEvent } from "../../inbox/record/event.ts";
import { labelOf } from "../../inbox/record/label.ts";
import type { Lane } from "../../inbox/record/lane.ts";
import { beginNext, endRun } from "../../inbox/record/leased-run.ts";
import type { IdempotencyRecord } from "../../inbox/record/record.ts";
import type { RunOutcome } from "../../inbox/record/run-outcome.ts";
import { sideRecord } from "../../inbox/record/side-record.ts";
import type { HeldReason } from "../../protocol/held-reasons.ts";
import { tokenMaker } from "../../time/environment.ts";

/** The time that a case lets pass. Even on a busy machine, the calls before it take less. */
export const SHORT_MS = 1_200;
export const HOUR_MS = 3_600_000;
export const DAY_MS: number = 24 * HOUR_MS;

export const newToken: () => string = tokenMaker("storetests");

/** A record's key: 32 hex digits, distributed like a hash. */
export function keyOf(n: number): string {
  return createHash("sha256").update(`record ${n}`).digest("hex").slice(0, 32);
}

function slotOf(status: string): string {
  return createHash("sha256").update(`slot ${status}`).digest("hex").slice(0, 16);
}

/** How an event may differ from a successful DEPOSIT of 10. */
export interface Sample {
  readonly status?: string;
  /** Default `payments`. */
  readonly flow?: string;
  readonly tenant?: string;
  readonly name?: string;
  readonly id?: string;
  readonly referenceId?: string;
  readonly content?: Uint8Array;
  readonly signature?: string;
  /** The ids and references of its readings. */
  readonly foundBy?: readonly string[];
  readonly retentionMs?: number;
  /** If given, the event is held at once for this reason. */
  readonly held?: HeldReason;
  /** The time from its acceptance until it is due. */
  readonly delayMs?: number;
  /** The lane in which it waits. Default `usual`. */
  readonly lane?: Lane;
}

function eventOf(key: string, now: number, sample: Sample): VerifiedEvent {
  const { status = "SUCCESS", flow = "payments", tenant = "", name = "DEPOSIT", id = "tx-1" } = sample;
  const { referenceId = "o-1", retentionMs = 8 * DAY_MS, held } = sample;
  const isCertain = flow === "payments" && held !== "malformed" && held !== "ambiguous";
  const referenceLabel = isCertain ? labelOf(referenceId) : null;
  return {
    key,
    slot: slotOf(status),
    variantSlot: () => slotOf(`${status}, contradicting`),
    id,
    name,
    status,
    rank: held === undefined ? (status === "PENDING" ? 0 : 1) : null,
    fixedFacts: referenceLabel === null ? {} : { referenceId: referenceLabel },
    amount: "10",
    signedAt: now,
    isWithinWindow: true,
    retentionMs,
    verdict: held ?? "run",
    detail: held === undefined ? null : "as sampled",
    referenceKey: null,
    referenceId: referenceLabel,
    foundBy: sample.foundBy ?? [],
    delivery: {
      flow,
      tenant,
      arrivedBy: flow === "payments" ? "callback" : "webhook",
      content: sample.content ?? Buffer.from(`referenceId=${referenceId}`),
      signature: sample.signature ?? null,
      keyId: "key-1",
      receivedAt: now,
    },
  };
}

/** The record after one more event was accepted: a new record if there was none before. */
export function acceptedRecord(
  key: string,
  now: number,
  sample: Sample = {},
  before: IdempotencyRecord | null = null,
): IdempotencyRecord {
  const { record } = accept(before === null ? null : copyRecord(before), eventOf(key, now, sample), {
    now,
    delayMs: sample.delayMs ?? 0,
    lane: sample.lane ?? "usual",
    isReferenceReused: false,
    admit: () => {},
  });
  if (record === null) throw new Error("The event changes nothing.");
  return record;
}

/** The record with its next event running under a lease. */
export function begunRecord(
  key: string,
  now: number,
  before: IdempotencyRecord,
  leaseMs: number,
): IdempotencyRecord {
  return withNextRun(key, now, before, leaseMs, null);
}

/** The record after a run of its next event. */
export function endedRecord(
  key: string,
  now: number,
  before: IdempotencyRecord,
  outcome: RunOutcome = { kind: "done" },
): IdempotencyRecord {
  return withNextRun(key, now, before, HOUR_MS, outcome);
}

function withNextRun(
  key: string,
  now: number,
  before: IdempotencyRecord,
  leaseMs: number,
  outcome: RunOutcome | null,
): IdempotencyRecord {
  const record = copyRecord(before);
  const input = beginNext(record, {
    key,
    token: newToken(),
    leaseMs,
    now,
    earlyBecause: null,
    mayRunCrashSuspect: () => true,
    firstHandler: () => "credit",
    handlersOf: () => [],
  });
  if (input === null) throw new Error("Nothing in the record is due.");
  if (outcome !== null) endRun(record, input, outcome, [], now);
  return record;
}

const DECISION = { by: "an operator", note: "looked into it" };

/** The record after a person has decided about its held event. */
export function decidedRecord(
  key: string,
  now: number,
  before: IdempotencyRecord,
  decision: "replay" | "discard",
): IdempotencyRecord {
  const record = copyRecord(before);
  const [slot = ""] = Object.entries(record.slots).find(([, { state }]) => state === "held") ?? [];
  const decide = decision === "replay" ? replay : discard;
  const answer = decide(record, key + slot, DECISION, now);
  if (!isMade(answer)) throw new Error("Nothing in the record is held.");
  return record;
}

/** A record that says which transaction a reference belongs to. */
export function referenceRecord(owner: string, now: number, lifetimeMs: number): IdempotencyRecord {
  return sideRecord({
    flow: "payments",
    tenant: "",
    id: owner,
    isClosed: true,
    content: {},
    lease: null,
    signedAt: now,
    expiresAt: now + lifetimeMs,
  });
}

/** The ids of a record's events. */
export function eventIds(key: string, record: IdempotencyRecord): readonly string[] {
  return Object.keys(record.slots).map((slot) => key + slot);
}
