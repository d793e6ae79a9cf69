import { type LeaseData, TELL_PREFIX } from "../inbox/record/lease.ts";
import type { GivenUp } from "../protocol/held-reasons.ts";

/** Handlers of an event that are no longer registered. */
export interface Missing {
  /** The names of those that were tried, or asked for by a replay, and have not finished. */
  readonly unfinished: readonly string[];
  /** Why one of them was given up; null if none was. */
  readonly givenUp: { readonly reason: GivenUp; readonly error: string } | null;
}

/** A question, such as `?alreadyHandled`, is not a handler. */
const QUESTION_PREFIX = "?";

/**
 * Finds handlers that were removed or renamed, or no longer want the event's status, while the event waited for another attempt.
 * `registered` are all handlers of the event's name now. `called` are those that want this event.
 */
export function missingHandlers(
  { steps, only }: Pick<LeaseData, "steps" | "only">,
  registered: ReadonlySet<string>,
  called: ReadonlySet<string>,
): Missing {
  const unfinished = new Set((only ?? []).filter((name) => !registered.has(name)));
  let givenUp: Missing["givenUp"] = null;
  for (const [name, { state, reason, error }] of Object.entries(steps)) {
    if (called.has(name) || name.startsWith(TELL_PREFIX) || name.startsWith(QUESTION_PREFIX)) continue;
    if (state === "given-up") givenUp ??= { reason: reason ?? "exhausted", error: error ?? "" };
    else if (state !== "done") unfinished.add(name);
  }
  return { unfinished: [...unfinished], givenUp };
}
