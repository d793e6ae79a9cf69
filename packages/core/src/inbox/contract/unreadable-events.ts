import type { PayhooksError } from "../../protocol/errors.ts";

/** Stored events that were left out, because their records cannot be read. */
export interface UnreadableEvents {
  /**
   * How many there are. Null if that is not known: a search by a text, such as a reference, finds no event that is
   * sealed with a key which this process does not have.
   */
  readonly count: number | null;
  /** Why one of these records cannot be read, and what to do about it. Its `cause` says whether the seal is the reason. */
  readonly error: PayhooksError;
}

/** The unreadable events of several pages together. The count is unknown if that of one page is. The first error is kept. */
export function addUnreadable(total: UnreadableEvents | null, page: UnreadableEvents): UnreadableEvents {
  if (total === null) return page;
  const isKnown = total.count !== null && page.count !== null;
  return { count: isKnown ? total.count + page.count : null, error: total.error };
}
