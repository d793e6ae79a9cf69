import type { UnreadableEvents } from "@payhooks/core";
import { escapeInvisible } from "./text.ts";

/** The events that a look had to leave out, in words; null if there are none. */
export function unreadableInWords(unreadable: UnreadableEvents | null): string | null {
  if (unreadable === null) return null;
  const { count, error } = unreadable;
  if (count === null)
    return `Events may be missing, because not all of them can be searched. ${escapeInvisible(error.message)}`;
  return `${count} ${count === 1 ? "event is" : "events are"} missing here. ${escapeInvisible(error.message)}`;
}
