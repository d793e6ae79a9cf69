import type { Swap } from "../inbox/contract/store.ts";
import type { EventLabels } from "../inbox/record/index-of.ts";

/** A write, with the text of its record. */
export interface RecordWrite {
  readonly item: Swap;
  readonly text: string;
}

/** The change of an event's row among those that are not finished. */
export interface StateChange {
  readonly labels: EventLabels;
  readonly change: "opened" | "moved" | "closed";
}

/** The events of one write whose rows change. */
export interface EventChanges {
  /** Those that are new in the record. */
  readonly addedEvents: readonly EventLabels[];
  /** Those that are no longer in it. */
  readonly removedEvents: readonly EventLabels[];
  readonly stateChanges: readonly StateChange[];
}

/** Compares the keys by which the record is found before a write with those after it. */
export function eventChanges({ index, before, expected }: Swap): EventChanges {
  const oldById = new Map(
    (expected === null ? [] : (before?.events ?? [])).map((labels) => [labels.eventId, labels]),
  );
  const addedEvents: EventLabels[] = [];
  const stateChanges: StateChange[] = [];
  for (const labels of index.events) {
    const old = oldById.get(labels.eventId);
    oldById.delete(labels.eventId);
    if (old === undefined) addedEvents.push(labels);
    const change = changeOf(old, labels);
    if (change !== null) stateChanges.push({ labels, change });
  }
  const removedEvents = [...oldById.values()];
  for (const labels of removedEvents)
    if (labels.state !== "finished") stateChanges.push({ labels, change: "closed" });
  return { addedEvents, removedEvents, stateChanges };
}

function changeOf(old: EventLabels | undefined, labels: EventLabels): StateChange["change"] | null {
  const wasOpen = old !== undefined && old.state !== "finished";
  const isOpen = labels.state !== "finished";
  if (!wasOpen) return isOpen ? "opened" : null;
  if (!isOpen) return "closed";
  return old.state !== labels.state || old.reason !== labels.reason ? "moved" : null;
}
