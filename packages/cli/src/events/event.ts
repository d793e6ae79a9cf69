import type { OtherEvent, StoredEvent } from "@payhooks/core";
import { contentsOf } from "@payhooks/core/events";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";

/** The facts of an event that are printed beside its line. */
export interface DisplayOptions {
  /** Its copies, and what has happened to it. */
  readonly history: boolean;
  /** The fields of its delivery, and the signed text: personal data. */
  readonly body: boolean;
  /** One row of a table for each event, instead of its lines. */
  readonly csv: boolean;
}

const TIME_FIELDS = ["acceptedAt", "heldAt", "lastDeliveryAt"] as const;

/** An event as JSON, with its times as text. Its body is in it only if somebody asks for it, because it holds personal data. */
export function eventAsJson(event: StoredEvent, withBody = false): Readonly<Record<string, unknown>> {
  const { delivery: _, ...facts } = event;
  const times = TIME_FIELDS.map((name) => [name, event[name] === null ? null : isoTime(event[name])]);
  return {
    ...facts,
    ...Object.fromEntries(times),
    others: event.others.map((other) => ({ ...other, acceptedAt: isoTime(other.acceptedAt) })),
    ...(withBody && { contents: event.delivery === null ? null : contentsOf(event.delivery) }),
  };
}

/** Prints an event: its state, what it is, when it was accepted, and what is wrong with it. */
export function printEvent(
  event: StoredEvent,
  { history, body }: DisplayOptions,
  { line, paint }: Terminal,
): void {
  const { eventId, state, acceptedAt, detail, handlers, replays, copies } = event;
  const where = paint(STATE_COLOURS[state], stateIn(event));
  line(`${eventId}  ${where}  ${escapeForTerminal(describeEvent(event))}  ${isoTime(acceptedAt)}`);
  if (detail !== null) line(`  ${escapeForTerminal(detail)}`);
  for (const [name, { attempts, state: handlerState, error }] of Object.entries(handlers)) {
    line(
      `  ${escapeForTerminal(name)}: ${handlerState}, ${countText(attempts, "attempt")}${error === null ? "" : `, ${escapeForTerminal(error)}`}`,
    );
  }
  if (replays > 0) line(`  replayed ${countText(replays, "time")}`);
  if (copies > 0 && history) {
    line(`  delivered ${countText(copies, "time")} more, last at ${isoTime(event.lastDeliveryAt)}`);
  }
  for (const { at, what, handler, attempt, error, by, note } of history ? event.history : []) {
    const attemptText =
      handler === undefined ? "" : ` (${escapeForTerminal(handler)}, attempt ${attempt ?? "?"})`;
    const why = error === undefined ? "" : `: ${escapeForTerminal(error)}`;
    const who = by === undefined ? "" : ` by ${escapeForTerminal(by)}: ${escapeForTerminal(note ?? "")}`;
    line(`  ${isoTime(at)} ${escapeForTerminal(what)}${attemptText}${why}${who}`);
  }
  if (body) printContents(event, line);
}

const STATE_COLOURS = {
  waiting: "cyan",
  retrying: "yellow",
  running: "cyan",
  held: "red",
  done: "green",
  stale: "green",
  discarded: "green",
} as const;

/** The facts that identify an event, in one line. */
export function describeEvent({ event, status, amount, id, referenceId, tenant }: StoredEvent): string {
  const reference = referenceId === null ? "" : `reference ${referenceId}`;
  const ofTenant = tenant === "" ? "" : `tenant ${tenant}`;
  return [event || "?", status, amountIn({ amount }), id, reference, ofTenant].filter(Boolean).join(" ");
}

export function amountIn({ amount }: Pick<StoredEvent, "amount">): string {
  return amount === null ? "" : `amount ${amount}`;
}

export function stateIn({ state, reason }: Pick<OtherEvent, "state" | "reason">): string {
  return reason === null ? state : `${state}: ${reason}`;
}

function printContents({ delivery }: StoredEvent, line: Terminal["line"]): void {
  if (delivery === null) {
    line("  its fields are no longer kept");
    return;
  }
  const { fields, signed } = contentsOf(delivery);
  for (const { name, value } of fields)
    line(
      `  ${escapeForTerminal(name)}: ${value === null ? "not certain" : escapeForTerminal(value, 100_000)}`,
    );
  if (signed.length > 0)
    line(`  signed: ${escapeForTerminal(signed.map(({ text }) => text).join(""), 100_000)}`);
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
