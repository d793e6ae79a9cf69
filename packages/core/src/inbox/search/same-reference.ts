import { isNotSearchable } from "../../protocol/errors.ts";
import { type Events, eachEvent } from "../contract/events.ts";
import { recordKeyOf } from "../record/event.ts";
import { isDigest } from "../record/label.ts";
import type { StoredEvent } from "../record/stored-event.ts";

/** A reference has few transactions, unless something goes very wrong. */
const MAX_SUCCESSES = 10;

/**
 * The SUCCESS events of other transactions with the same reference, at most 10, for a person who decides about an event
 * that is held as `reference-reused`. Empty for every other event. If the inbox cannot search for the reference, the
 * list has only the SUCCESS that has claimed the reference. Null if that is no longer known.
 */
export async function successesOfReference(
  events: Pick<Events, "list" | "referenceHolder">,
  { eventId, reason, referenceId, tenant }: StoredEvent,
): Promise<readonly StoredEvent[] | null> {
  if (reason !== "reference-reused" || referenceId === null) return [];
  const readHolder = async (): Promise<readonly StoredEvent[] | null> => {
    const holder = await events.referenceHolder(eventId);
    return holder && [holder];
  };
  if (isDigest(referenceId)) return readHolder();
  const successes: StoredEvent[] = [];
  try {
    for await (const event of eachEvent(events, { referenceId, tenant })) {
      if (event.status !== "SUCCESS" || recordKeyOf(event.eventId) === recordKeyOf(eventId)) continue;
      if (successes.push(event) === MAX_SUCCESSES) break;
    }
    return successes;
  } catch (error) {
    if (!isNotSearchable(error)) throw error;
    return readHolder();
  }
}
