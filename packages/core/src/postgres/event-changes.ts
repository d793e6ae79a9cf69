import type { Swap } from "../inbox/contract/store.ts";
import type { EventLabels } from "../inbox/record/index-of.ts";

/** A write, with the text of its record. */
export interface Write {
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
  readonly added: readonly EventLabels[];
  /** Those that are no longer in it. */
  readonly gone: readonly EventLabels[];
  readonly changes: readonly StateChange[];
}

/** Compares the keys by which the record is found before a write with those after it. */
export function eventChanges({ index, before, expected }: Swap): EventChanges {
  const known = new Map((expected === null ? [] : (before?.events ?? [])).map((one) => [one.eventId, one]));
  const added: EventLabels[] = [];
  const changes: StateChange[] = [];
  for (const labels of index.events) {
    const old = known.get(labels.eventId);
    known.delete(labels.eventId);
    if (old === undefined) added.push(labels);
    const change = changeOf(old, labels);
    if (change !== null) changes.push({ labels, change });
  }
  const gone = [...known.values()];
  for (const labels of gone) if (labels.state !== "finished") changes.push({ labels, change: "closed" });
  return { added, gone, changes };
}

function changeOf(old: EventLabels | undefined, labels: EventLabels): StateChange["change"] | null {
  const wasOpen = old !== undefined && old.state !== "finished";
  const isOpen = labels.state !== "finished";
  if (!wasOpen) return isOpen ? "opened" : null;
  if (!isOpen) return "closed";
  return old.state !== labels.state || old.reason !== labels.reason ? "moved" : null;
}
