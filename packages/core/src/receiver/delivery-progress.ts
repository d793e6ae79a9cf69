import type { AcceptResult, VerifiedEvent } from "../inbox/record/event.ts";
import type { DeliveryErrorCode } from "../protocol/errors.ts";
import type { DeliveryEnd, DeliveryOutcome } from "./instrumentation.ts";

/** The result of a delivery so far, for an instrumentation. */
export interface DeliveryProgress {
  /** The text of the instrumentation that is kept with the event. */
  readonly trace: string | null;
  /** Counts only if the delivery was neither refused nor accepted. */
  outcome: DeliveryOutcome;
  code: DeliveryErrorCode | null;
  acceptResult: AcceptResult | null;
  /** Null until it is verified. */
  event: VerifiedEvent | null;
}

export function newDeliveryProgress(trace: string | null): DeliveryProgress {
  return { trace, outcome: "answered", code: null, acceptResult: null, event: null };
}

/** The end of a delivery that was answered with this status. */
export function deliveryEndOf(
  { outcome, code, acceptResult }: DeliveryProgress,
  status: number,
): DeliveryEnd {
  const isStored =
    acceptResult !== null && acceptResult.outcome !== "expired" && acceptResult.outcome !== "stale";
  return {
    outcome: acceptResult?.outcome ?? (code === null ? outcome : "refused"),
    status,
    code,
    eventId: isStored ? acceptResult.eventId : null,
    reason: acceptResult?.reason ?? null,
  };
}
