import type { SubjectEvent, SubjectOrder } from "../contract/subject-order.ts";

/** An event of a subject, and the meaning of its place in the order. */
export interface ExplainedEvent extends SubjectEvent {
  /** A sentence. It has signed times, but no other value of a delivery. */
  readonly text: string;
}

/** Says for each event of a subject which event it waits for, and which event has overtaken it. */
export function explainOrder({ events }: SubjectOrder): readonly ExplainedEvent[] {
  return events.map((event) => ({ ...event, text: explainEvent(event, events) }));
}

function explainEvent(event: SubjectEvent, events: readonly SubjectEvent[]): string {
  const { state, isLatest, signedAt } = event;
  const laterEvent = events.find((other) => other.signedAt > signedAt && hasBegun(other));
  const runningEvent = events.find((other) => other.isLatest && other.state === "running" && other !== event);
  if (state === "stale") {
    return laterEvent === undefined
      ? "A later event has overtaken it. The inbox no longer knows that event."
      : `It was overtaken: the event signed at ${timeOf(laterEvent)} has replaced it.`;
  }
  if (state === "discarded") return "A person has discarded it.";
  if (state === "done") {
    if (laterEvent !== undefined)
      return `It has run. The event signed at ${timeOf(laterEvent)} has replaced it.`;
    return isLatest ? "It has run, and is the latest event." : "It has run.";
  }
  if (laterEvent !== undefined) {
    return `It will not run: the later event signed at ${timeOf(laterEvent)} has begun.`;
  }
  if (runningEvent !== undefined)
    return `It waits for the event signed at ${timeOf(runningEvent)}, which is running.`;
  const twin = events.find((other) => other !== event && other.signedAt === signedAt);
  if (state === "held") {
    return twin === undefined
      ? "It is held, until a person decides or a later event overtakes it."
      : `It is held: another event was signed at ${timeOf(twin)}, too, and nobody can say which is the latest.`;
  }
  if (state === "running") return "It is running. Other events of its subject wait for it.";
  return isLatest
    ? "It has begun, so no earlier event runs any more, and it is tried again."
    : "It waits for its run. If a later event begins first, this one will not run.";
}

function hasBegun({ isLatest, state }: SubjectEvent): boolean {
  return isLatest || state === "running" || state === "retrying" || state === "done";
}

function timeOf({ signedAt }: SubjectEvent): string {
  return new Date(signedAt).toISOString();
}
