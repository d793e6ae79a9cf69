/** Events that a search has found but must leave out. The search reports them, because otherwise they would seem not to exist. */
import { isNotSearchable, type PayhooksError } from "../../protocol/errors.ts";
import type { EventFilter } from "../contract/event-query.ts";
import type { ListOrder, RecordStore, VersionedRecord } from "../contract/store.ts";
import type { UnreadableEvents } from "../contract/unreadable-events.ts";
import { isUnreadable } from "../record/codec.ts";
import { unreadableError } from "../write/records.ts";

/** Counts the records that a search has to leave out. */
export class UnreadableCounter {
  #count = 0;
  #firstError: PayhooksError | null = null;

  /** True if the record cannot be read. It is counted then. */
  countIfUnreadable(versioned: VersionedRecord | null): boolean {
    if (versioned === null || !isUnreadable(versioned.record)) return false;
    this.countError(unreadableError(versioned.record));
    return true;
  }

  /** Counts a record that cannot be read or changed, for this reason. */
  countError(error: PayhooksError): void {
    this.#count++;
    this.#firstError ??= error;
  }

  get events(): UnreadableEvents | null {
    return this.#firstError === null ? null : { count: this.#count, error: this.#firstError };
  }
}

const LIST_ENDS: readonly (readonly [EventFilter, ListOrder])[] = [
  [{}, "oldest"],
  [{}, "newest"],
  [{ state: "finished" }, "oldest"],
  [{ state: "finished" }, "newest"],
];

/**
 * The events that an empty search may have missed. Labels of sealed events are hashes. So a search for a label misses
 * events that are sealed with a key that this process does not have. The first and last events of all lists show
 * whether there is such an event. Null if there is none, or if the search was not for a label.
 */
export async function findUnsearched(
  store: RecordStore,
  filter: EventFilter,
): Promise<UnreadableEvents | null> {
  const { tenant, event, id, referenceId } = filter;
  if ([tenant, event, id, referenceId].every((text) => text === undefined)) return null;
  for (const [listFilter, first] of LIST_ENDS) {
    const page = await store.list(listFilter, null, 1, first).catch((error: unknown) => {
      if (isNotSearchable(error)) return null;
      throw error;
    });
    for (const { versioned } of page?.events ?? []) {
      const { record } = versioned;
      if (isUnreadable(record) && record.code !== undefined)
        return { count: null, error: unreadableError(record) };
    }
  }
  return null;
}
