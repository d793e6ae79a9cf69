import type { Stopwatch } from "../clock.ts";
import type { StepResult } from "./changes.ts";
import type { Accepted, AcceptOutcome, LeaseData, SlotState, VerifiedEvent } from "./inbox.ts";
import { accept, claimedReference } from "./record/accept.ts";
import { checkHeldRoom, type IdempotencyRecord } from "./record/record.ts";
import { type BeginOptions, begin, beginNext, isBegunBy } from "./record/run.ts";

/** Something that has to be known before an event can be accepted, and costs a question of its own. */
export type Need = "reference" | "held";

/** What was found out for an event, as far as it was needed. */
export interface Known {
  /** Whether another id has the event's reference; null as long as nobody has asked. */
  readonly referenceReused: boolean | null;
  /** How many entries are held; null as long as nobody has asked. */
  readonly held: number | null;
}

/** How to accept an event. */
export interface AcceptPlan {
  readonly event: VerifiedEvent;
  readonly delayMs: number;
  readonly maxHeld: number;
  /** Events signed before this time may have been known and forgotten. */
  forgottenBefore(): number;
  readonly known: Known;
  /**
   * How to begin in the same step: `next` whatever of the record is due, `this` the event itself, though it may have been
   * accepted before; null: not at all.
   */
  readonly begin: {
    readonly what: "next" | "this";
    readonly options: Omit<BeginOptions, "now">;
    /** False while this process runs something of the same record. */
    isAllowed(): boolean;
  } | null;
  stopwatch(): Stopwatch;
}

/** What became of an event, or what is needed to say so. */
export type AcceptAnswer =
  | { readonly kind: "needs"; readonly need: Need }
  | {
      readonly kind: "accepted";
      readonly accepted: Accepted;
      /** How the event stands now; null where there is no such event. */
      readonly state: SlotState | null;
      /** The run that was begun in the same step, and since when its lease counts. */
      readonly begun: { readonly lease: LeaseData; readonly leased: Stopwatch } | null;
    };

/** Thrown by a step that needs to know how many entries are held. */
const NEEDS_HELD: unique symbol = Symbol("needs held");

/** The step that accepts an event. Its own write, met again, is recognised by the token of what it began. */
export function acceptStep(
  plan: AcceptPlan,
): (record: IdempotencyRecord | null, now: number) => StepResult<AcceptAnswer> {
  const { event, known } = plan;
  let made: Extract<AcceptAnswer, { kind: "accepted" }> | null = null;
  return (record, now) => {
    if (made !== null && made.begun !== null && isBegunBy(record, made.begun.lease)) {
      return { answer: made, record: null };
    }
    if (known.referenceReused === null && claimedReference(record, event) !== null) {
      return { answer: { kind: "needs", need: "reference" }, record: null };
    }
    if (record === null && mayBeForgotten(plan)) {
      return { answer: expired(plan), record: null };
    }
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
  if (outcome !== "held" || maxHeld === Number.POSITIVE_INFINITY) return;
  if (known.held === null) throw NEEDS_HELD;
  checkHeldRoom(known.held, maxHeld);
}
