import { isNotSearchable } from "../../protocol/errors.ts";
import { type Events, eachEvent } from "../contract/events.ts";
import { recordKeyOf } from "../record/event.ts";
import { isDigest } from "../record/label.ts";
import type { StoredEvent } from "../record/life.ts";

/** A reference has few transactions, unless something goes very wrong. */
const MAX_READ = 10;

/**
 * The SUCCESS events of other transactions with the same reference, at most 10, for a person who decides about an event
 * that is held as `reference-reused`. Empty for every other event. If the inbox cannot search for the reference, the
 * list has only the SUCCESS that has claimed the reference. Null if that is no longer known.
 */
export async function successesOfReference(
  events: Pick<Events, "list" | "claimant">,
  { eventId, reason, referenceId, tenant }: StoredEvent,
): Promise<readonly StoredEvent[] | null> {
  if (reason !== "reference-reused" || referenceId === null) return [];
  const claimant = async (): Promise<readonly StoredEvent[] | null> => {
    const found = await events.claimant(eventId);
    return found && [found];
  };
  if (isDigest(referenceId)) return claimant();
  const others: StoredEvent[] = [];
  try {
    for await (const one of eachEvent(events, { referenceId, tenant })) {
      if (one.status !== "SUCCESS" || recordKeyOf(one.eventId) === recordKeyOf(eventId)) continue;
      if (others.push(one) === MAX_READ) break;
    }
    return others;
  } catch (error) {
    if (!isNotSearchable(error)) throw error;
    return claimant();
  }
}
