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

/** No event of either lane, as a limit. */
export const ZERO_PER_LANE: Lanes = { usual: 0, patient: 0 };

export function otherLane(lane: Lane): Lane {
  return lane === "usual" ? "patient" : "usual";
}
