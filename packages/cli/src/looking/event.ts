import type { EventSummary, Life } from "@payhooks/core";
import { shown } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";

/** Prints one event as a line: its state, what it is, and when it was accepted. */
export function printEvent(event: EventSummary, { line, paint }: Terminal): void {
  const { eventId, state, reason, id, referenceId, status, acceptedAt } = event;
  const where = reason === null ? state : `${state}: ${reason}`;
  const reference = referenceId === null ? "" : `reference ${referenceId}`;
  const what = [event.event || "?", status, id, reference].filter(Boolean).join(" ");
  line(`${eventId}  ${paint(COLOURS[state], where)}  ${shown(what)}  ${timeOf(acceptedAt)}`);
}

const COLOURS = {
  waiting: "cyan",
  retrying: "yellow",
  running: "cyan",
  held: "red",
  finished: "green",
} as const;

/** One event as JSON, with its times as text. */
export function eventAsJson(event: EventSummary): Readonly<Record<string, unknown>> {
  return { ...event, acceptedAt: timeOf(event.acceptedAt) };
}

/** Prints what became of an event, below its line: its attempts, its copies, and the decisions about it. */
export function printLife(life: Life, { line }: Terminal): void {
  if (life.copies > 0) {
    const times = life.copies === 1 ? "once more" : `${life.copies} times more`;
    line(`  delivered ${times}, last at ${timeOf(life.lastDeliveryAt)}`);
  }
  if (life.detail !== null) line(`  ${shown(life.detail)}`);
  for (const { at, what, handler, attempt, error, by, note } of life.history) {
    const of = handler === undefined ? "" : ` (${shown(handler)}, attempt ${attempt ?? "?"})`;
    const why = error === undefined ? "" : `: ${shown(error)}`;
    const who = by === undefined ? "" : ` by ${shown(by)}: ${shown(note ?? "")}`;
    line(`  ${timeOf(at)} ${shown(what)}${of}${why}${who}`);
  }
}

/** The same as JSON. The body is left out, since it holds personal data. */
export function lifeAsJson({
  detail,
  copies,
  lastDeliveryAt,
  replays,
  steps,
  history,
}: Life): Readonly<Record<string, unknown>> {
  return { detail, copies, lastDeliveryAt: timeOf(lastDeliveryAt), replays, handlers: steps, history };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
