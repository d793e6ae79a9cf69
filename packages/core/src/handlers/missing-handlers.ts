import { type LeaseData, TELL_PREFIX } from "../inbox/record/lease.ts";
import type { GivenUp } from "../protocol/held-reasons.ts";

/** What an event still owes to handlers that nobody has registered any more. */
export interface Missing {
  /** Names of those that were tried, or asked for by a replay, and have not finished. */
  readonly unfinished: readonly string[];
  /** What one of them was given up for; null where none was. */
  readonly givenUp: { readonly reason: GivenUp; readonly error: string } | null;
}

/** A question, such as `?alreadyHandled`, is no handler. */
const QUESTION_PREFIX = "?";

/**
 * Looks for handlers that were removed or renamed, or want the event's status no more, while the event waited for another
 * try. `registered` are all that the event's name has now, `called` those that want this very event.
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
