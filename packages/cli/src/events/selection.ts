import type { BulkReason, EventQuery, HeldReason, Inbox, StoredEvent } from "@payhooks/core";
import { BULK_REASONS, eachEvent, HELD_REASONS } from "@payhooks/core/events";
import { UsageError } from "../command-line/errors.ts";
import type { OptionSpec } from "../command-line/form.ts";
import { type ParsedArguments, parseChoice } from "../command-line/parsed-arguments.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { parseTime } from "../command-line/time.ts";
import { isoTime } from "./event.ts";
import { UnreadableCounter } from "./unreadable.ts";

const STATES = ["waiting", "retrying", "running", "held", "finished", "unfinished"] as const;
const REASONS = Object.keys(BULK_REASONS) as BulkReason[];
/** The reasons that only a bulk knows: events of the others are held. */
const UNHELD_REASONS = REASONS.filter((reason) => !isHeldReason(reason));

/** Options that say which events a command is about. */
export const FILTER_OPTIONS: Readonly<Record<(typeof FILTER_NAMES)[number], OptionSpec>> = {
  state: {
    value: "STATE",
    help: `only events in this state: ${STATES.join(", ")}`,
    default: "unfinished; any with --id or --reference",
  },
  reason: {
    value: "REASONS",
    multiple: true,
    help: `only events that are held for one of these reasons, with commas between them: ${Object.keys(HELD_REASONS).join(", ")}; for erase, and a replay of finished events, also ${UNHELD_REASONS.join(", ")}`,
  },
  flow: { value: "FLOW", help: "only events of payments, connect or a source" },
  tenant: {
    value: "TENANT",
    help: "only events of this tenant, as the key resolver names it; --id and --reference need it if a resolver chooses the keys",
  },
  event: { value: "NAME", help: "only events of this name, such as DEPOSIT" },
  reference: { value: "TEXT", help: "only payments with this reference (referenceId)" },
  id: { value: "TEXT", help: "only events with this payTxnId or idempotency_key" },
  since: {
    value: "TIME",
    help: "only events that were accepted at this time or later, such as 2026-03-01T12:00:00Z, or 2d for two days ago",
  },
  until: { value: "TIME", help: "only events that were accepted before this time" },
  "min-amount": {
    value: "AMOUNT",
    help: "only events of this amount or more, such as 10.50; each event is read",
  },
  "max-amount": { value: "AMOUNT", help: "only events of this amount or less" },
  handler: {
    value: "NAME",
    help: "only events that this handler was tried for; of events that have ended, only those where an attempt of it failed",
  },
};

export const FILTER_NAMES = [
  "state",
  "reason",
  "flow",
  "tenant",
  "event",
  "reference",
  "id",
  "since",
  "until",
  "min-amount",
  "max-amount",
  "handler",
] as const;

/** The events that a command is about. */
export interface Selection {
  readonly query: Omit<EventQuery, "reason" | "cursor" | "limit" | "first">;
  /** The end of a list that comes first. */
  readonly first?: EventQuery["first"];
  /** Why the events are held, or how they have ended. Empty: any reason. */
  readonly reasons: readonly BulkReason[];
}

/** Any flow, because only the receiver knows its sources. */
function flowIn(args: ParsedArguments): string | undefined {
  const flow = args.text("flow");
  if (flow === undefined || /^[a-z][a-z0-9-]{0,31}$/.test(flow)) return flow;
  throw new UsageError("--flow is payments, connect, or the name of a source.");
}

/** The selection that the options ask for. */
export function selectionOf(args: ParsedArguments): Selection {
  // A shell variable that is not set must not discard everything.
  for (const name of ["id", "reference", "handler"] as const) {
    if (args.text(name) === "") throw new UsageError(`--${name} must not be empty.`);
  }
  const reasons = args.texts("reason").flatMap((text) => text.split(","));
  return {
    query: {
      state: args.choice("state", STATES),
      flow: flowIn(args),
      tenant: args.text("tenant"),
      event: args.text("event"),
      referenceId: args.text("reference"),
      id: args.text("id"),
      since: timeIn(args, "since"),
      until: timeIn(args, "until"),
      amount: amountsIn(args),
      handler: args.text("handler"),
    },
    reasons: [...new Set(reasons.map((reason) => parseChoice("--reason", reason.trim(), REASONS)))],
  };
}

/** The range of amounts; undefined if none is given. The inbox checks it. */
function amountsIn(args: ParsedArguments): EventQuery["amount"] {
  const [min, max] = [args.text("min-amount"), args.text("max-amount")];
  return min === undefined && max === undefined ? undefined : { min, max };
}

function timeIn(args: ParsedArguments, name: "since" | "until"): number | undefined {
  const text = args.text(name);
  if (text === undefined) return undefined;
  const time = parseTime(text, Date.now());
  if (time !== null) return time;
  throw new UsageError(
    `--${name} must be a time that there is, such as 2026-03-01 or 2026-03-01T12:00:00Z, or how long ago it was, such as 90s, 30m, 1h, 2d or 1w; it is ${JSON.stringify(text)}.`,
  );
}

/** Prints the range of times as it was understood, if one was given. */
export function printRange({ query: { since, until } }: Selection, { line }: Terminal): void {
  const from = since === undefined ? [] : [`at ${isoTime(since)} or later`];
  const to = until === undefined ? [] : [`before ${isoTime(until)}`];
  if (since !== undefined || until !== undefined) line(`Accepted ${[...from, ...to].join(", and ")}.`);
}

/** The events that match: reason by reason, and the oldest of each reason first if the query does not say otherwise. */
export async function* select(
  { events }: Inbox,
  { query, first, reasons }: Selection,
  unreadable: UnreadableCounter,
): AsyncGenerator<StoredEvent> {
  for (const reason of reasons.length === 0 ? [undefined] : reasons.filter(isHeldReason)) {
    yield* eachEvent(events, { ...query, first, reason }, unreadable.add);
  }
}

/** Refuses reasons that events are not held for. */
export function checkHeldReasons({ reasons }: Selection): void {
  const other = reasons.find((reason) => !isHeldReason(reason));
  if (other === undefined) return;
  throw new UsageError(
    `No event is held for the reason ${other}: --reason ${other} is for erase, and for a replay of finished events.`,
  );
}

function isHeldReason(reason: BulkReason): reason is HeldReason {
  return Object.hasOwn(HELD_REASONS, reason);
}

const WHOLE_ID_PATTERN = /^[0-9a-f]{48}$/;
const MIN_ID_CHARACTERS = 4;

export function isWholeId(text: string): boolean {
  return WHOLE_ID_PATTERN.test(text);
}

/**
 * Completes the beginnings of event ids. The result has each id once. A beginning that no held event has is returned as it is. A
 * beginning that several held events have is an error, so that no decision is made about the wrong one.
 */
export async function eventIdsOf({ events }: Inbox, ids: readonly string[]): Promise<readonly string[]> {
  // An id that was shortened for display, as in the help, ends with dots.
  const beginnings = ids.map((text) => text.replace(/(?:…|\.{3})$/, ""));
  for (const beginning of beginnings) {
    if (beginning.length >= MIN_ID_CHARACTERS) continue;
    throw new UsageError(`${JSON.stringify(beginning)} is too short: give at least 4 characters of the id.`);
  }
  if (beginnings.every(isWholeId)) return [...new Set(beginnings)];
  const heldIds: string[] = [];
  const unreadable = new UnreadableCounter();
  for await (const { eventId } of eachEvent(events, { state: "held" }, unreadable.add)) heldIds.push(eventId);
  const wholeIds = beginnings.map((beginning) => {
    const fitting = heldIds.filter((eventId) => eventId.startsWith(beginning));
    if (fitting.length === 0 && !isWholeId(beginning)) unreadable.check();
    if (fitting.length < 2) return fitting[0] ?? beginning;
    const list = fitting.slice(0, 5).join("\n");
    throw new UsageError(`${fitting.length} held events begin with ${beginning}: give more of the id.`, list);
  });
  return [...new Set(wholeIds)];
}
