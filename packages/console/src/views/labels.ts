import type { StoredEvent } from "@payhooks/core";
import type { Redaction } from "../redaction/redaction.ts";

/** The names of an event on a page. */
type NamedEvent = Pick<StoredEvent, "id" | "event" | "referenceId">;

/**
 * Whether the reading of an event is certain. If it is not, its `id` is not an id of the service, but a hash of the signed text.
 */
export function isCertain({ event }: Pick<StoredEvent, "event">): boolean {
  return event !== "";
}

/** The name of an event in lists and titles: its reference, its id, or a part of its hash. */
export function nameOf(event: NamedEvent, redaction: Redaction): string {
  const reference = redaction.redactLabel("referenceId", event.referenceId);
  if (reference !== null) return reference;
  if (!isCertain(event)) return `Unnamed (${event.id.slice(0, 8)})`;
  return redaction.redactLabel("id", event.id);
}
