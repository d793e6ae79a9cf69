import { isPayhooksError } from "../protocol/errors.ts";
import type { Inbox } from "./inbox.ts";
import { recordKeyOf } from "./record/event.ts";
import type { Life } from "./record/life.ts";

/** A reference has few transactions, unless something goes very wrong. */
const MAX_READ = 10;

/**
 * The SUCCESS events of other transactions with the same reference, at most 10, for a person who decides about an event that is held
 * as `reference-reused`. Empty for every other event. Null if the inbox cannot search for references.
 */
export async function successesOfReference(
  inbox: Pick<Inbox, "find" | "read">,
  { eventId, reason, referenceId, tenant }: Life,
): Promise<readonly Life[] | null> {
  if (reason !== "reference-reused" || referenceId === null) return [];
  try {
    const found = await inbox.find({ referenceId, ...(tenant !== "" && { tenant }) });
    const others = found.filter(
      (one) => one.status === "SUCCESS" && recordKeyOf(one.eventId) !== recordKeyOf(eventId),
    );
    const lives = await Promise.all(others.slice(0, MAX_READ).map((one) => inbox.read(one.eventId)));
    return lives.filter((life) => life !== null);
  } catch (error) {
    if (isPayhooksError(error) && error.code === "ERR_NOT_SEARCHABLE") return null;
    throw error;
  }
}
