/**
 * Why an event is kept for a person instead of being run. For the first four reasons, the event never entered the table
 * of deduplication, because it is not certain which event it is, or whether it is one to run. The next three come from
 * the table. The others come from running.
 */
export type HeldReason =
  | "ambiguous"
  | "malformed"
  | "unexpected"
  | "unrecognized"
  | "conflict"
  | "mismatch"
  | "reference-reused"
  | "exhausted"
  | "rejected"
  | "crashed"
  | "schema"
  | "unhandled";

/**
 * The work that a held event leaves to a person, for each reason. For `investigate`, the person finds out which event is genuine, which
 * amount is right, or whether an effect has happened: a replay runs the event as it is, perhaps beside another event that has
 * run. For `fix`, the person fixes a fault, and a replay repeats the failed work.
 */
export const HELD_REASONS: Readonly<Record<HeldReason, "investigate" | "fix">> = {
  ambiguous: "investigate",
  malformed: "investigate",
  unexpected: "investigate",
  unrecognized: "investigate",
  conflict: "investigate",
  mismatch: "investigate",
  "reference-reused": "investigate",
  exhausted: "fix",
  rejected: "fix",
  crashed: "investigate",
  schema: "fix",
  unhandled: "fix",
};

/** Why an event is held, as a sentence for the person who has to decide about it. */
export const HELD_BECAUSE: Readonly<Record<HeldReason, string>> = {
  ambiguous:
    "Its signature fits more than one event, and these differ. Nobody can say from it alone which one is true.",
  malformed: "It is authentic, but its fields are not as documented.",
  unexpected: "It is authentic, but for another merchant or callback address than the receiver expects.",
  unrecognized: "It is authentic, but its event name or its status is none of the documented ones.",
  conflict: "It contradicts the final status that is recorded for the same transaction.",
  mismatch: "The same event is recorded with other facts, such as another amount.",
  "reference-reused": "Another transaction with the same reference has already succeeded.",
  exhausted: "A handler has failed at every attempt that it had.",
  rejected: "A handler has rejected it.",
  crashed: "The process died while a handler ran, and the handler must not be run again automatically.",
  schema: "Its data does not fit the schema that is registered for its name.",
  unhandled: "There is no handler for it, and it is not ignored either.",
};

const ASK_ADVICE =
  "Ask the service which of the two is true. A replay runs the handlers for this event as well. If it is not true, discard it.";
const REPLAY_ADVICE = "Then replay it: it is read again, as if it had just arrived.";

/** The advice for a held event. */
export const HELD_ADVICE: Readonly<Record<HeldReason, string>> = {
  ambiguous:
    "Look the transaction up at the service, pass the true result to receiver.payments.ingest, and discard this event.",
  malformed: `Update Payhooks, or declare the field in your names. ${REPLAY_ADVICE}`,
  unexpected: `If it is for you, correct payments.expect. ${REPLAY_ADVICE} If it is not, discard it.`,
  unrecognized: `Update Payhooks, or declare the status in your names. ${REPLAY_ADVICE}`,
  conflict: ASK_ADVICE,
  mismatch: ASK_ADVICE,
  "reference-reused": ASK_ADVICE,
  exhausted: "Fix what failed. Then replay it: the handlers that have not finished run again.",
  rejected: "Decide whether the handler was right. Replay it once the cause is gone, or discard it.",
  crashed: "Find out whether the handler's effect has happened. If not, replay it. If it has, discard it.",
  schema: "Widen the schema and deploy. Then replay it: its data is checked again.",
  unhandled: "Register the handler, or ignore the event, and deploy. Then replay it.",
};

/**
 * True if a person must find out what is true before deciding about an event that is held for this reason. A bulk includes
 * such events only if it names the reason.
 */
export function needsInvestigation(reason: HeldReason): boolean {
  return HELD_REASONS[reason] === "investigate";
}

/** True for an event that never entered the table of deduplication. A replay reads it again, as if it had just arrived. */
export function isOutsideTable(verdict: "run" | HeldReason): boolean {
  return (
    verdict === "ambiguous" ||
    verdict === "malformed" ||
    verdict === "unexpected" ||
    verdict === "unrecognized"
  );
}

/** Why a handler is not tried again. */
export type GiveUpReason = "exhausted" | "rejected" | "crashed";
