import type { Inbox, StoredEvent } from "@payhooks/core";
import {
  type ExplainedEvent,
  eachEvent,
  explain,
  explainOrder,
  type SubjectOrder,
} from "@payhooks/core/events";
import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { isoTime, stateIn } from "../events/event.ts";
import { INBOX_OPTIONS, INBOX_USAGE, inboxOptionsGiven, openInbox } from "../events/open-inbox.ts";
import { eventIdsOf, isWholeId, type Selection, selectionOf } from "../events/selection.ts";
import { UnreadableCounter } from "../events/unreadable.ts";

/** How many events are explained, the newest of them. A reference has few, unless something goes very wrong. */
const MAX_EVENTS = 20;

export const explainCommand: Command = {
  name: "explain",
  summary: "Say in words what happened to an event, why it is where it is, and what to do",
  usage: [`EVENT_ID | REFERENCE | ID ${INBOX_USAGE} [--flow FLOW] [--tenant TENANT]`],
  options: {
    ...INBOX_OPTIONS,
    flow: {
      value: "FLOW",
      help: "payments, connect or a source; on Redis, the id of a source's event needs it",
    },
    tenant: {
      value: "TENANT",
      help: "the tenant of the reference or the id, as the key resolver names it",
    },
  },
  notes: [
    "ID is a payTxnId or an idempotency_key. The beginning of an EVENT_ID is enough if the event is held.",
    `If a reference has more than ${MAX_EVENTS} events, it explains the newest ${MAX_EVENTS}, and says how many there are more.`,
    "It reads only the record of the event and those of its subject. Its output contains the reference, the amount and the errors of handlers. The exit code is 1 if nothing is found, or if an event cannot be read.",
  ],
  examples: [
    "payhooks explain order-17 --postgres postgres://localhost/shop",
    "payhooks explain 3f0c… --sqlite payhooks.db",
  ],
  arguments: { least: 1, most: 1 },
  async run(args, terminal) {
    const text = args.positionals[0] ?? "";
    if (text === "")
      throw new UsageError("The event is missing: give its id, its reference or its payTxnId.");
    const inbox = await openInbox(args);
    try {
      const unreadable = new UnreadableCounter();
      const events = await eventsOf(inbox, text, selectionOf(args).query, unreadable, terminal);
      const inboxOptions = inboxOptionsGiven(args);
      for (const event of events) {
        printExplanation(event, await inbox.events.subjectOrder(event.eventId), inboxOptions, terminal);
      }
      unreadable.check();
      if (events.length > 0) return EXIT.ok;
      terminal.line(
        "The inbox has no event with this event id, reference or id. Either no delivery of it was accepted, or it ended so long ago that its record was deleted.",
      );
      terminal.line("Look the payment up at the service. If a resolver chooses the keys, give --tenant.");
      return EXIT.failure;
    } finally {
      await inbox.close({ graceMs: 0 });
    }
  },
};

/** The events that a text names, in the order in which they were accepted. Says how many older ones are left out. */
async function eventsOf(
  inbox: Inbox,
  text: string,
  { flow, tenant }: Selection["query"],
  unreadable: UnreadableCounter,
  terminal: Terminal,
): Promise<readonly StoredEvent[]> {
  const { events } = inbox;
  if (!isWholeId(text)) {
    const eventsById = new Map<string, StoredEvent>();
    for (const query of [{ id: text }, { referenceId: text }]) {
      for await (const event of searchEvents(inbox, { ...query, flow, tenant }, unreadable, terminal))
        eventsById.set(event.eventId, event);
    }
    if (eventsById.size > 0) {
      const found = [...eventsById.values()].sort((a, b) => a.acceptedAt - b.acceptedAt);
      const notShown = Math.max(0, found.length - MAX_EVENTS);
      if (notShown > 0) {
        terminal.json({ notShown });
        terminal.line(
          `${notShown} older ${notShown === 1 ? "event is" : "events are"} not shown: payhooks events --reference or --id lists them.\n`,
        );
      }
      return found.slice(notShown);
    }
    if (!/^[0-9a-f]{4,47}(?:…|\.{3})?$/.test(text)) return [];
  }
  const [eventId = text] = await eventIdsOf(inbox, [text]);
  const event = await events.get(eventId);
  return event === null ? [] : [event];
}

/** Finds the events of a query. An inbox that does not search among finished events searches the others. */
async function* searchEvents(
  { events }: Inbox,
  query: Selection["query"],
  unreadable: UnreadableCounter,
  terminal: Terminal,
): AsyncGenerator<StoredEvent> {
  try {
    yield* eachEvent(events, query, unreadable.add);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_NOT_SEARCHABLE") throw error;
    terminal.json({ notSearched: "finished" });
    terminal.line("Redis does not find finished events by their reference: they were not searched.\n");
    yield* eachEvent(events, { ...query, state: "unfinished" }, unreadable.add);
  }
}

function printExplanation(
  event: StoredEvent,
  order: SubjectOrder | null,
  inboxOptions: string,
  terminal: Terminal,
): void {
  const { eventId, detail } = event;
  const { past, now, handlers, next, advice, decisions } = explain(event, Date.now());
  const { line, json, paint } = terminal;
  const explainedOrder = order === null ? null : explainOrder(order);
  const pastMoments = past.map(({ at, text }) => ({ at: isoTime(at), text }));
  json({
    eventId,
    state: event.state,
    reason: event.reason,
    detail,
    past: pastMoments,
    now,
    handlers,
    next,
    advice,
    decisions,
    order: explainedOrder?.map(({ signedAt, acceptedAt, ...facts }) => ({
      ...facts,
      signedAt: isoTime(signedAt),
      acceptedAt: isoTime(acceptedAt),
    })),
  });
  line(`${paint("bold", eventId)}  ${stateIn(event)}`);
  for (const { at, text } of pastMoments) line(`  ${at}  ${escapeForTerminal(text, 1_000)}`);
  const part = (title: string, sentences: readonly string[]): void => {
    line(`\n  ${paint("bold", title)}`);
    for (const sentence of sentences) line(`  ${escapeForTerminal(sentence, 1_000)}`);
  };
  part("Now", [...now, ...(detail === null ? [] : [`Detail: ${detail}`]), ...handlers]);
  if (explainedOrder !== null)
    part("Order of its subject, by signed time", explainedOrder.map(orderLine(eventId)));
  part("Next", next);
  part("What you can do", advice);
  for (const decision of decisions) {
    const command = `payhooks events ${decision} ${eventId} --by NAME --note TEXT ${inboxOptions}`;
    line(`  ${escapeForTerminal(command.trimEnd(), 2_000)}`);
  }
  line();
}

/** One event of a subject. The one that is explained has a mark. */
function orderLine(explainedId: string): (one: ExplainedEvent) => string {
  return ({ eventId, event, signedAt, text, ...facts }) =>
    `${eventId === explainedId ? ">" : " "} ${isoTime(signedAt)}  ${eventId.slice(0, 8)}…  ${event || "?"}  ${stateIn(facts)}. ${text}`;
}
