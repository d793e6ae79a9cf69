import type { EventCounts, EventFilter, EventSummary, Inbox } from "@payhooks/core";
import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import type { Given } from "../command-line/given.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { INBOX_OPTIONS, openInbox } from "../held/open-inbox.ts";
import { eventAsJson, printEvent } from "./event.ts";

const STATES = ["waiting", "retrying", "running", "held", "finished"] as const;
const DEFAULT_LIMIT = 50;
const MAX_PAGE = 1_000;

export const eventsCommand: Command = {
  name: "events",
  summary: "List and count the events of an inbox",
  usage: [
    "--redis URL | --sqlite FILE | --postgres URL [--state STATE] [--flow FLOW] [--event NAME] [--since TIME] [--until TIME] [--newest] [--limit N]",
    "--count --redis URL | --sqlite FILE | --postgres URL",
  ],
  options: {
    ...INBOX_OPTIONS,
    state: {
      value: "STATE",
      help: `only events in this state: ${STATES.join(", ")}`,
      default: "all but finished",
    },
    flow: { value: "FLOW", help: "only events of payments or connect" },
    tenant: { value: "TENANT", help: "only events of this tenant" },
    event: { value: "NAME", help: "only events of this name, such as DEPOSIT" },
    reference: { value: "TEXT", help: "only payments with this reference" },
    since: {
      value: "TIME",
      help: "only events that were accepted at this time or later, such as 2026-03-01T12:00:00Z",
    },
    until: { value: "TIME", help: "only events that were accepted before this time" },
    newest: { help: "list the event that was accepted last first" },
    limit: { value: "N", help: "at most N events", default: String(DEFAULT_LIMIT) },
    count: { help: "count the events that are not finished, by state and reason, instead of listing them" },
  },
  notes: [
    "A date alone means midnight in UTC. A time without a zone is in the time zone of this machine.",
    "Redis keeps no list of finished events.",
  ],
  examples: [
    "payhooks events --sqlite payhooks.db --state retrying",
    "payhooks events --postgres postgres://localhost/shop --state finished --newest --limit 20",
    "payhooks events --count --redis redis://127.0.0.1:6379",
  ],
  arguments: { least: 0, most: 0 },
  async run(given, terminal) {
    const filter = filterOf(given);
    const limit = given.number("limit", { min: 1 }) ?? DEFAULT_LIMIT;
    const other = [...FILTERS, "newest", "limit"].find((name) => given.flag(name));
    if (given.flag("count") && other !== undefined) {
      throw new UsageError(`--count counts everything: leave --${other} out.`);
    }
    const inbox = await openInbox(given);
    try {
      if (given.flag("count")) print(await inbox.events.counts(), terminal);
      else await list(inbox, filter, limit, given.flag("newest"), terminal);
      return EXIT.ok;
    } finally {
      await inbox.close({ graceMs: 0 });
    }
  },
};

const FILTERS = ["state", "flow", "tenant", "event", "reference", "since", "until"] as const;

function filterOf(given: Given): EventFilter {
  return {
    state: given.choice("state", STATES),
    flow: given.choice("flow", ["payments", "connect"]),
    tenant: given.text("tenant"),
    event: given.text("event"),
    referenceId: given.text("reference"),
    since: timeOf(given, "since"),
    until: timeOf(given, "until"),
  };
}

function timeOf(given: Given, name: "since" | "until"): number | undefined {
  const text = given.text(name);
  if (text === undefined) return undefined;
  const time = Date.parse(text);
  if (/^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(time)) return time;
  throw new UsageError(
    `--${name} must be a time such as 2026-03-01 or 2026-03-01T12:00:00Z; it is ${JSON.stringify(text)}.`,
  );
}

async function list(
  inbox: Inbox,
  filter: EventFilter,
  limit: number,
  isNewestFirst: boolean,
  terminal: Terminal,
): Promise<void> {
  let count = 0;
  let cursor: string | null = null;
  do {
    const page: { readonly events: readonly EventSummary[]; readonly next: string | null } =
      await inbox.events.list(filter, {
        cursor,
        limit: Math.min(MAX_PAGE, limit - count),
        first: isNewestFirst ? "newest" : "oldest",
      });
    for (const event of page.events) {
      terminal.json(eventAsJson(event));
      printEvent(event, terminal);
    }
    count += page.events.length;
    cursor = page.next;
  } while (cursor !== null && count < limit);
  const more = cursor === null ? "" : ", and there may be more: --limit shows them";
  terminal.line(
    count === 0 ? "There are no such events." : `\n${count} ${count === 1 ? "event" : "events"}${more}.`,
  );
}

function print(counts: EventCounts, terminal: Terminal): void {
  terminal.json(counts);
  const { waiting, retrying, running, held, heldBy, oldestDueMs } = counts;
  for (const [state, count] of Object.entries({ waiting, retrying, running, held })) {
    terminal.line(`${state.padEnd(10)}${count}`);
  }
  for (const [reason, count] of Object.entries(heldBy)) terminal.line(`  ${reason}: ${count}`);
  if (oldestDueMs !== null) terminal.line(`the oldest has been due for ${Math.round(oldestDueMs / 1_000)} s`);
}
