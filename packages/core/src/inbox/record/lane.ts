/**
 * The queue in which an event waits for a place. Polls take from both lanes in turn. A crowd of events waits in the
 * patient lane, so it does not keep the others waiting.
 */
export type Lane = "usual" | "patient";

/** Something of each lane. */
export interface Lanes<T = number> {
  readonly usual: T;
  readonly patient: T;
}

/** Both lanes, in the order in which they are taken from. */
export const LANES: readonly [Lane, Lane] = ["usual", "patient"];

/** Nothing of either lane. */
export const NO_EVENTS: Lanes = { usual: 0, patient: 0 };

export function otherThan(lane: Lane): Lane {
  return lane === "usual" ? "patient" : "usual";
}
