/**
 * Why an event is kept for a person instead of being run. For the first four reasons, the event never entered the table of
 * deduplication, since it is not certain which event it is, or whether it is one to run. The next three come from the table.
 * The others come from running.
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
 * What a person has to do about a held event, for each reason. For `truth`, somebody finds out which event is genuine, which amount
 * is right, or whether an effect has happened: a replay runs the event as it is, perhaps beside another one that has run. For
 * `repair`, something has to be mended, and a replay repeats what failed.
 */
export const HELD_REASONS: Readonly<Record<HeldReason, "truth" | "repair">> = {
  ambiguous: "truth",
  malformed: "truth",
  unexpected: "truth",
  unrecognized: "truth",
  conflict: "truth",
  mismatch: "truth",
  "reference-reused": "truth",
  exhausted: "repair",
  rejected: "repair",
  crashed: "truth",
  schema: "repair",
  unhandled: "repair",
};

/**
 * Whether a decision about an event that is held for this reason is a decision about what is true. Such events are never
 * decided about together with others unless somebody names the reason.
 */
export function isAboutTruth(reason: HeldReason): boolean {
  return HELD_REASONS[reason] === "truth";
}

/** True for an event that never entered the table of deduplication. A replay reads it again, as if it had just arrived. */
export function isEntry(verdict: "run" | HeldReason): boolean {
  return (
    verdict === "ambiguous" ||
    verdict === "malformed" ||
    verdict === "unexpected" ||
    verdict === "unrecognized"
  );
}

/** Why a handler is not tried again. */
export type GivenUp = "exhausted" | "rejected" | "crashed";
