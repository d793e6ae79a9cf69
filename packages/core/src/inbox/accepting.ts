import { PayhooksError } from "../protocol/errors.ts";
import type { Stopwatch } from "../time/clock.ts";
import type { StepResult } from "./changes.ts";
import { accept, claimAtAcceptance } from "./record/accept.ts";
import type { Accepted, AcceptOutcome, SlotState, VerifiedEvent } from "./record/event.ts";
import type { LeaseData } from "./record/lease.ts";
import type { IdempotencyRecord } from "./record/record.ts";
import type { ReferenceClaim } from "./record/reference-claim.ts";
import { type BeginOptions, begin, beginNext, isBegunBy } from "./record/run.ts";

/** A fact that accepting an event may depend on, and that has to be asked for separately. */
export type Need = { readonly claim: ReferenceClaim } | "held";

/** The facts that were asked for so far for one event. */
export interface Known {
  /** Whether another id has the event's reference; null as long as nobody has asked. */
  readonly referenceReused: boolean | null;
  /** The record that claims the event's reference, if it was asked for. */
  readonly claim: { readonly key: string; readonly version: string } | null;
  /** There is room for one more held event of the tenant. False as long as nobody has asked. */
  readonly mayBeHeld: boolean;
}

/** How to accept an event. */
export interface AcceptPlan {
  readonly event: VerifiedEvent;
  readonly delayMs: number;
  readonly maxHeld: number;
  /** The store may have forgotten events that were signed before this time. */
  forgottenBefore(): number;
  readonly known: Known;
  /**
   * What the same write begins to run. `next`: the event of the record that is due first. `this`: the event itself, even if it
   * was accepted before. Null: nothing.
   */
  readonly begin: {
    readonly what: "next" | "this";
    readonly options: Omit<BeginOptions, "now">;
    /** False while this process is already running an event of the same record. */
    isAllowed(): boolean;
  } | null;
  stopwatch(): Stopwatch;
}

/** What became of an event, or which fact is still needed to decide. */
export type AcceptAnswer =
  | { readonly kind: "needs"; readonly need: Need }
  | {
      readonly kind: "accepted";
      readonly accepted: Accepted;
      /** The event's state now; null if there is no such event. */
      readonly state: SlotState | null;
      /** The run that was begun in the same step, and since when its lease counts. */
      readonly begun: { readonly lease: LeaseData; readonly leased: Stopwatch } | null;
    };

/** A step throws this if it needs to know whether one more event may be held. */
const NEEDS_HELD: unique symbol = Symbol("needs held");

/**
 * The step that accepts an event. It may be computed again after its write was made. The token of the run that the write began
 * shows this.
 */
export function acceptStep(
  plan: AcceptPlan,
): (record: IdempotencyRecord | null, now: number) => StepResult<AcceptAnswer> {
  const { event, known } = plan;
  let made: Extract<AcceptAnswer, { kind: "accepted" }> | null = null;
  return (record, now) => {
    if (made !== null && made.begun !== null && isBegunBy(record, made.begun.lease)) {
      return { answer: made, record: null };
    }
    if (record === null && mayBeForgotten(plan)) {
      return { answer: expired(plan), record: null };
    }
    if (record === null) checkClock(event, now);
    const claim = known.referenceReused === null ? claimAtAcceptance(record, event) : null;
    if (claim !== null) return { answer: { kind: "needs", need: { claim } }, record: null };
    let step: ReturnType<typeof accept>;
    try {
      step = accept(record, event, {
        now,
        delayMs: plan.delayMs,
        referenceReused: known.referenceReused === true,
        admit: (outcome) => admit(outcome, plan),
      });
    } catch (error) {
      if (error === NEEDS_HELD) return { answer: { kind: "needs", need: "held" }, record: null };
      throw error;
    }
    const changed = step.record ?? record;
    const leased = plan.stopwatch();
    const lease = changed === null ? null : beginIn(changed, step.slot, plan, now);
    const state = changed?.slots[step.slot]?.state ?? null;
    made = {
      kind: "accepted",
      accepted: lease === null ? step.accepted : { ...step.accepted, begun: true },
      state,
      begun: lease === null ? null : { lease, leased },
    };
    const isNew =
      step.accepted.outcome === "new" ||
      step.accepted.outcome === "progress" ||
      step.accepted.outcome === "held";
    return {
      answer: made,
      record: lease === null ? step.record : changed,
      begins: lease !== null,
      announce: lease === null && isNew && plan.delayMs === 0,
    };
  };
}

function beginIn(
  record: IdempotencyRecord,
  slot: string,
  { begin: wish }: AcceptPlan,
  now: number,
): LeaseData | null {
  if (wish === null || !wish.isAllowed()) return null;
  const options = { ...wish.options, now };
  if (wish.what === "next") return beginNext(record, options);
  const begun = begin(record, slot, options);
  return begun.kind === "leased" ? begun.lease : null;
}

function mayBeForgotten({ event, forgottenBefore }: AcceptPlan): boolean {
  return event.signedAt !== null && event.signedAt <= forgottenBefore() && event.evenIfExpired !== true;
}

/**
 * The receiver's clock says that the event was signed within the window. If the store's clock says that the event's record would
 * have expired, one of the two is wrong. The record may be there, and only look expired.
 */
function checkClock({ signedAt, retentionMs, fresh, evenIfExpired }: VerifiedEvent, now: number): void {
  if (!fresh || signedAt === null || evenIfExpired === true || now - signedAt < retentionMs) return;
  throw new PayhooksError(
    "ERR_INBOX_UNAVAILABLE",
    "By the clock of the inbox's store, the event was signed so long ago that its record would have expired. Nothing was written.",
    { fix: "Is the clock of the store ahead, or that of this machine behind? Set both by a time service." },
  );
}

function expired({ event, forgottenBefore }: AcceptPlan): AcceptAnswer {
  const accepted: Accepted = {
    outcome: "expired",
    eventId: event.key + event.slot,
    reason: null,
    detail: null,
    previousAmount: null,
    begun: false,
    overtaken: [],
    signedBefore: forgottenBefore(),
  };
  return { kind: "accepted", accepted, state: null, begun: null };
}

function admit(outcome: AcceptOutcome, { known, maxHeld }: AcceptPlan): void {
  if (outcome === "held" && maxHeld !== Number.POSITIVE_INFINITY && !known.mayBeHeld) throw NEEDS_HELD;
}
