import type { EventLabels, Swap } from "@payhooks/core/inbox";

/** The writes of an event by their names: the steps of docs/concepts/durability.md. */
export const WRITES = [
  /** An event is stored, and nobody has begun it. */
  "accept",
  /** It is stored and begun at once. */
  "accept and begin",
  "begin",
  /** A handler starts, in a write of its own. */
  "start",
  /** A handler has ended, and the next one starts. */
  "end and start",
  "renew",
  "done",
  "retry",
  "held",
  "replay",
  "discard",
] as const;

export type Write = (typeof WRITES)[number];

/** A write by its name, and the event that it is about. */
export interface NamedWrite {
  readonly write: Write;
  /** `payTxnId status`. */
  readonly key: string;
}

/** Tells the writes of one process apart. Null for those that have no name here. */
export function writeNamer(): (item: Swap) => NamedWrite | null {
  const begins = new Set<string>();
  return (item) => {
    const { record, index, before, key } = item;
    const { lease } = record;
    const isBegin = lease !== null && !begins.has(lease.token);
    if (lease !== null) begins.add(lease.token);
    const earlier = new Map(before?.events.map((event) => [event.eventId, event.state]));
    for (const event of index.events) {
      const write = changeOf(earlier.get(event.eventId), event.state, isBegin);
      if (write !== null) return { write, key: keyOf(event) };
    }
    const event = index.events.find(({ eventId }) => eventId === key + (lease?.slot ?? ""));
    if (lease === null || event === undefined) return null;
    if (isBegin) return { write: "begin", key: keyOf(event) };
    if (index.dueAt !== before?.dueAt) return { write: "renew", key: keyOf(event) };
    const handlerStates = Object.values(record.slots[lease.slot]?.work?.handlerStates ?? {});
    return {
      write: handlerStates.some(({ state }) => state === "done") ? "end and start" : "start",
      key: keyOf(event),
    };
  };
}

type State = EventLabels["state"];

/** The new state of an event; null if it is as it was, or was begun. */
function changeOf(from: State | undefined, to: State, isBegin: boolean): Write | null {
  switch (from) {
    case undefined:
      return isBegin ? "accept and begin" : "accept";
    case "running":
      if (to === "finished") return "done";
      if (to === "held") return "held";
      return to === "running" ? null : "retry";
    case "held":
      if (to === "finished") return "discard";
      return to === "held" ? null : "replay";
    default:
      return null;
  }
}

function keyOf({ id, status }: EventLabels): string {
  return `${id} ${status}`;
}
