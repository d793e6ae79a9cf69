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
  | "unhandled";

/** Every reason to hold an event. */
export const HELD_REASONS: Readonly<Record<HeldReason, true>> = {
  ambiguous: true,
  malformed: true,
  unexpected: true,
  unrecognized: true,
  conflict: true,
  mismatch: true,
  "reference-reused": true,
  exhausted: true,
  rejected: true,
  crashed: true,
  unhandled: true,
};

/**
 * The reasons about which a person has to find out what is true: which event is genuine, which amount is right, or whether an
 * effect has happened. A replay runs the event as it is, perhaps beside another one that has run. For the other reasons,
 * something has to be repaired, and a replay repeats what failed.
 */
const ABOUT_TRUTH: Readonly<Partial<Record<HeldReason, true>>> = {
  ambiguous: true,
  malformed: true,
  unexpected: true,
  unrecognized: true,
  conflict: true,
  mismatch: true,
  "reference-reused": true,
  crashed: true,
};

/**
 * Whether a decision about an event that is held for this reason is a decision about what is true. Such events are never
 * decided about together with others unless somebody names the reason.
 */
export function isAboutTruth(reason: HeldReason): boolean {
  return ABOUT_TRUTH[reason] === true;
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
