/**
 * Why an event is kept for a person instead of being run. The first four never entered the table of
 * deduplication: nobody can say yet which event they are. The next three are the table's. The rest come from running.
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

/** True for what never entered the table of deduplication; a replay reads it again, as if it had just arrived. */
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
