import type { EventCounts, Inbox, StoredEvent } from "@payhooks/core";
import { prometheusCounts } from "@payhooks/core/metrics";
import { EXIT } from "../command-line/errors.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { printColumns, printRow, stderrTerminal } from "./csv.ts";
import { type DisplayOptions, eventAsJson, printEvent } from "./event.ts";
import { eventIdsOf, type Selection, select } from "./selection.ts";
import { UnreadableCounter } from "./unreadable.ts";

/** Prints the events that match, at most `limit` of them. Resolves with the exit code. */
export async function list(
  inbox: Inbox,
  selection: Selection,
  limit: number,
  display: DisplayOptions,
  terminal: Terminal,
): Promise<number> {
  const { id, referenceId, state } = selection.query;
  const isNamed = (id ?? referenceId) !== undefined;
  const unreadable = new UnreadableCounter();
  try {
    return await printEvents(
      select(inbox, selection, unreadable),
      unreadable,
      limit,
      isNamed,
      { ...display, history: isNamed || display.history },
      terminal,
    );
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "ERR_NOT_SEARCHABLE" || state !== undefined) throw error;
    terminal.json({ notSearched: "finished" });
    const beside = display.csv ? stderrTerminal(terminal) : terminal;
    beside.line("Redis does not find finished events by their reference: they were not searched.");
    const query = { ...selection.query, state: "unfinished" } as const;
    return list(inbox, { ...selection, query }, limit, display, terminal);
  }
}

/** Prints the events with these ids, or beginnings of the ids of held events, and names the ids that no event has. */
export async function show(
  inbox: Inbox,
  ids: readonly string[],
  display: DisplayOptions,
  terminal: Terminal,
): Promise<number> {
  const wholeIds = await eventIdsOf(inbox, ids);
  const events = await Promise.all(wholeIds.map((eventId) => inbox.events.get(eventId)));
  const knownEvents = events.filter((event) => event !== null);
  const missingIds = wholeIds.filter((_, index) => events[index] === null);
  const beside = display.csv ? stderrTerminal(terminal) : terminal;
  for (const eventId of missingIds) {
    terminal.json({ eventId, outcome: "not-found" });
    beside.line(`${escapeForTerminal(eventId)}  was not found`);
  }
  const code = await printEvents(
    knownEvents,
    new UnreadableCounter(),
    knownEvents.length,
    true,
    { ...display, history: true },
    terminal,
  );
  return missingIds.length > 0 ? EXIT.failure : code;
}

async function printEvents(
  events: AsyncIterable<StoredEvent> | Iterable<StoredEvent>,
  unreadable: UnreadableCounter,
  limit: number,
  isNamed: boolean,
  display: DisplayOptions,
  output: Terminal,
): Promise<number> {
  const terminal = display.csv ? stderrTerminal(output) : output;
  let count = 0;
  let isWhole = true;
  for await (const event of events) {
    if (count === limit) {
      isWhole = false;
      break;
    }
    // Not before the inbox has answered: if it cannot search for this, another search prints the table.
    if (display.csv && count === 0) printColumns();
    count++;
    terminal.json(eventAsJson(event, display.body));
    if (display.csv) printRow(event);
    else printEvent(event, display, terminal);
  }
  if (display.csv && count === 0) printColumns();
  const more = isWhole ? "" : ", and there are more: --limit shows them";
  if (count > 0) terminal.line(`\n${count} ${count === 1 ? "event" : "events"}${more}.`);
  else if (unreadable.hasAny) terminal.line("No event could be read.");
  else terminal.line(isNamed ? "Nothing was found." : "There are no such events.");
  unreadable.check();
  return count === 0 && isNamed ? EXIT.failure : EXIT.ok;
}

export function printCounts(counts: EventCounts, terminal: Terminal): void {
  terminal.json(counts);
  const { waiting, retrying, running, held, heldBy, oldestDueMs } = counts;
  for (const [state, count] of Object.entries({ waiting, retrying, running, held })) {
    terminal.line(`${state.padEnd(10)}${count}`);
  }
  for (const [reason, count] of Object.entries(heldBy)) terminal.line(`  ${reason}: ${count}`);
  if (oldestDueMs !== null) terminal.line(`the oldest has been due for ${Math.round(oldestDueMs / 1_000)} s`);
}

/** Prints the counts for Prometheus, with the names that a process of the application has for them. */
export function printMetrics(counts: EventCounts, terminal: Terminal): void {
  terminal.json(counts);
  for (const line of prometheusCounts(counts).trimEnd().split("\n")) terminal.line(line);
}
