import { PayhooksError } from "../../protocol/errors.ts";
import { accept, claimAtAcceptance, NO_DETAILS } from "../record/accept-into-record.ts";
import type { AcceptOutcome, AcceptResult, SlotState, VerifiedEvent } from "../record/event.ts";
import type { Lane } from "../record/lane.ts";
import type { IdempotencyRecord } from "../record/record.ts";
import {
  claimsToProlong,
  finishedClaimsOf,
  noteHolders,
  type ReferenceClaim,
  satisfiesClaim,
} from "../record/reference-claim.ts";
import type { Run } from "../run/run.ts";
import type { ReferenceHolder } from "../write/claims.ts";
import type { ComputedChange } from "../write/records.ts";

/** A fact on which the acceptance of an event may depend. It takes a question of its own to the store. */
export type Need = { readonly claims: readonly ReferenceClaim[] } | "held";

/** A claim that the store was asked for, and who has it. */
export interface KnownClaim extends ReferenceHolder {
  readonly claim: ReferenceClaim;
}

/** The facts about one event that are known so far. */
export interface KnownFacts {
  /** The claims that were asked for, by their keys. */
  readonly claims: ReadonlyMap<string, KnownClaim>;
  /** True if one more event of the tenant may be held. False until this was checked. */
  readonly mayBeHeld: boolean;
}

/** How to accept an event. */
export interface AcceptPlan {
  readonly event: VerifiedEvent;
  readonly delayMs: number;
  /** The lane in which the event waits, if it is new. */
  readonly lane: Lane;
  /** The kept text of an instrumentation; null if it has none. */
  readonly trace: string | null;
  readonly maxHeld: number;
  /** The store may have forgotten events that were signed before this time. */
  forgottenBefore(): number;
  readonly knownFacts: KnownFacts;
  /** The run that the same write begins, if there is something to run. Null: the write begins no run. */
  readonly run: Run | null;
  /**
   * The event to run. `next`: the event of the record that is due first. `this`: the event itself, even if it was accepted
   * before.
   */
  readonly beginWhich: "next" | "this";
}

/** The result for an event, or the fact that is still needed to decide. */
export type AcceptAnswer =
  | { readonly kind: "needs"; readonly need: Need }
  | {
      readonly kind: "accepted";
      readonly accepted: AcceptResult;
      /** The event's state now; null if there is no such event. */
      readonly state: SlotState | null;
    };

/** The change throws this if it needs to know whether one more event may be held. */
const NEEDS_HELD_CHECK: unique symbol = Symbol("needs held");

/**
 * The change that accepts an event. It may be computed again after its write was made. Then the record has the run that the write
 * began, or the event is a copy of itself.
 */
export function acceptChange(
  plan: AcceptPlan,
): (record: IdempotencyRecord | null, now: number) => ComputedChange<AcceptAnswer> {
  const { event, knownFacts, run } = plan;
  let lastAnswer: AcceptAnswer | null = null;
  const isUnknown = (wantedClaim: ReferenceClaim): boolean => {
    const knownClaim = knownFacts.claims.get(wantedClaim.key);
    return (
      knownClaim === undefined ||
      (knownClaim.owner === event.key && !satisfiesClaim(knownClaim.claim, knownClaim.token, wantedClaim))
    );
  };
  return (record, now) => {
    if (lastAnswer !== null && run?.isBegunIn(record) === true) return { answer: lastAnswer, record: null };
    if (record === null && mayBeForgotten(plan)) return { answer: expiredAnswer(plan), record: null };
    if (record === null) checkClock(event, now);
    const ownClaim = claimAtAcceptance(record, event, now);
    const holder = ownClaim === null ? null : knownFacts.claims.get(ownClaim.key);
    if (ownClaim !== null && holder === undefined) return needAnswer({ claims: [ownClaim] });
    const before = record === null ? null : finishedClaimsOf(record);
    let step: ReturnType<typeof accept>;
    try {
      step = accept(record, event, {
        now,
        delayMs: plan.delayMs,
        lane: plan.lane,
        trace: plan.trace,
        isReferenceReused: holder != null && holder.owner !== event.key,
        admit: (outcome) => admit(outcome, plan),
      });
    } catch (error) {
      if (error === NEEDS_HELD_CHECK) return needAnswer("held");
      throw error;
    }
    const { accepted, slot } = step;
    const changedRecord = step.record ?? record;
    const missingClaims =
      changedRecord === null ? [] : claimsToProlong(before, changedRecord, event).filter(isUnknown);
    if (missingClaims.length > 0) return needAnswer({ claims: missingClaims });
    const isNoted = changedRecord !== null && noteHolders(changedRecord, event.key, knownFacts.claims);
    const isBegin =
      run?.begin(changedRecord, plan.beginWhich === "this" ? slot : "next", now).kind === "leased";
    const state = changedRecord?.slots[slot]?.state ?? null;
    lastAnswer = { kind: "accepted", accepted: isBegin ? { ...accepted, isBegun: true } : accepted, state };
    return {
      answer: lastAnswer,
      record: isBegin || isNoted ? changedRecord : step.record,
      isBegin,
      shouldAnnounce: !isBegin && hasWorkLeft(accepted) && plan.delayMs === 0,
    };
  };
}

function needAnswer(need: Need): ComputedChange<AcceptAnswer> {
  return { answer: { kind: "needs", need }, record: null };
}

/** True if handlers are left to call: those of the event, or its onHeld handlers. */
export function hasWorkLeft({ outcome }: AcceptResult): boolean {
  return outcome === "new" || outcome === "progress" || outcome === "held";
}

function mayBeForgotten({ event, forgottenBefore }: AcceptPlan): boolean {
  return event.signedAt !== null && event.signedAt <= forgottenBefore() && event.evenIfExpired !== true;
}

/**
 * By the receiver's clock, the event was signed within the window. If a record of it would have expired by the store's clock, one
 * of the two clocks is wrong. The store may still have a record that only looks expired.
 */
function checkClock(
  { signedAt, retentionMs, isWithinWindow, evenIfExpired }: VerifiedEvent,
  now: number,
): void {
  if (!isWithinWindow || signedAt === null || evenIfExpired === true || now - signedAt < retentionMs) return;
  throw new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    "By the clock of the inbox's store, the event was signed so long ago that its record would have expired. Nothing was written.",
    {
      fix: "The clock of the store is ahead, or that of this machine is behind. Set both by a time service.",
    },
  );
}

function expiredAnswer({ event, forgottenBefore }: AcceptPlan): AcceptAnswer {
  const accepted: AcceptResult = {
    outcome: "expired",
    eventId: event.key + event.slot,
    ...NO_DETAILS,
    signedBefore: forgottenBefore(),
  };
  return { kind: "accepted", accepted, state: null };
}

function admit(outcome: AcceptOutcome, { knownFacts, maxHeld }: AcceptPlan): void {
  if (outcome === "held" && maxHeld !== Number.POSITIVE_INFINITY && !knownFacts.mayBeHeld)
    throw NEEDS_HELD_CHECK;
}
