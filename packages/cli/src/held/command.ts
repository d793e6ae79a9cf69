import type { Held, HeldFilter, Inbox } from "@payhooks/core";
import type { Command } from "../command-line/command.ts";
import { CliError, EXIT, tellable, UsageError } from "../command-line/errors.ts";
import { chosen, type Given } from "../command-line/given.ts";
import { shown, type Terminal } from "../command-line/terminal.ts";
import { openInbox } from "./open-inbox.ts";

const ACTIONS = ["list", "replay", "discard"] as const;
const REASONS = [
  "ambiguous",
  "malformed",
  "unexpected",
  "unrecognized",
  "conflict",
  "mismatch",
  "reference-reused",
  "exhausted",
  "rejected",
  "crashed",
  "unhandled",
] as const;

export const heldCommand: Command = {
  name: "held",
  summary: "List, replay and discard the events that wait for a person",
  usage: [
    "list --redis URL | --sqlite FILE [--reason REASON] [--flow FLOW] [--body]",
    "replay EVENT_ID … | --all --by NAME --note TEXT [--handlers a,b] --redis URL | --sqlite FILE",
    "discard EVENT_ID … | --all --by NAME --note TEXT --redis URL | --sqlite FILE",
  ],
  options: {
    redis: {
      value: "URL",
      help: "the Redis of redisInbox; without --redis and --sqlite, REDIS_URL is taken",
    },
    prefix: { value: "TEXT", help: "prefix of the Redis keys, where the inbox has one", default: "payhooks" },
    sqlite: { value: "FILE", help: "the file of sqliteInbox" },
    reason: { value: "REASON", help: `only entries held for it: ${REASONS.join(", ")}` },
    flow: { value: "FLOW", help: "only entries of payments or connect" },
    tenant: { value: "TENANT", help: "only entries of this tenant" },
    limit: { value: "N", help: "at most so many entries" },
    body: { help: "show the raw body and the history of each entry; bodies hold personal data" },
    all: { help: "replay or discard every entry that the filters let through" },
    by: { value: "NAME", help: "who decides; kept in the entry's history" },
    note: { value: "TEXT", help: "why; kept in the entry's history" },
    handlers: { value: "NAMES", help: "replay these handlers only, finished ones too, separated by commas" },
  },
  notes: [
    "A replay queues the event: a worker of your application runs it, with the handlers that it has then. A discarded event is kept, and never runs.",
  ],
  examples: [
    "payhooks held list --sqlite payhooks.db --reason exhausted",
    'payhooks held replay 3f0c… --sqlite payhooks.db --by amina --note "bank was down"',
    'payhooks held discard --all --reason ambiguous --redis redis://127.0.0.1:6379 --by amina --note "forgeries, checked"',
  ],
  arguments: { least: 1, most: 1_000 },
  async run(given, terminal) {
    const [word = "", ...ids] = given.positionals;
    const action = chosen("The action", word, ACTIONS);
    const filter = filterOf(given);
    const decision = action === "list" ? null : decisionOf(given, ids);
    if (action === "list" && ids.length > 0) throw new UsageError("held list takes no event id.");
    if (action !== "replay" && given.flag("handlers")) throw new UsageError("--handlers is for replay.");
    const inbox = await openInbox(given);
    try {
      await opened(inbox, given);
      if (decision === null) return await list(inbox, filter, given.flag("body"), terminal);
      const chosenIds = given.flag("all") ? await idsOf(inbox, filter) : ids;
      return await decide(inbox, action as "replay" | "discard", chosenIds, decision, terminal);
    } finally {
      await inbox.close({ graceMs: 0 });
    }
  },
};

/** What a server or a file that is not there says, in our words; never with the address, which may hold a password. */
async function opened(inbox: Inbox, given: Given): Promise<void> {
  try {
    await inbox.ready();
  } catch (error) {
    if (tellable(error) !== null) throw error;
    const { code, message } = error as { code?: string; message?: string };
    const what = given.flag("sqlite") ? "The SQLite file" : "Redis";
    const fix = given.flag("sqlite")
      ? "Is it the file of sqliteInbox?"
      : "Is it running, and are address and password right?";
    throw new CliError(
      "ERR_INBOX_UNAVAILABLE",
      `${what} cannot be opened: ${code ?? message?.replace(/\.$/, "")}.`,
      fix,
    );
  }
}

interface Choice {
  readonly by: string;
  readonly note: string;
  readonly handlers?: readonly string[];
}

function filterOf(given: Given): HeldFilter {
  return {
    reason: given.choice("reason", REASONS),
    flow: given.choice("flow", ["payments", "connect"]),
    tenant: given.text("tenant"),
    limit: given.number("limit", { min: 1 }),
  };
}

function decisionOf(given: Given, ids: readonly string[]): Choice {
  if (ids.length === 0 && !given.flag("all")) {
    throw new UsageError("Name the events (payhooks held list shows their ids), or give --all.");
  }
  if (ids.length > 0 && given.flag("all")) throw new UsageError("Give event ids or --all, not both.");
  const filters = ["reason", "flow", "tenant", "limit"].filter((name) => given.flag(name));
  if (ids.length > 0 && filters.length > 0) throw new UsageError(`--${filters[0]} goes with --all.`);
  const by = given.required("by", "who decides");
  const note = given.required("note", "why");
  const handlers = given
    .text("handlers")
    ?.split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  return handlers === undefined ? { by, note } : { by, note, handlers };
}

async function list(
  inbox: Inbox,
  filter: HeldFilter,
  withBody: boolean,
  terminal: Terminal,
): Promise<number> {
  let count = 0;
  for await (const entry of inbox.held.list(filter)) {
    count++;
    terminal.json(viewOf(entry, withBody));
    print(entry, withBody, terminal);
  }
  terminal.line(count === 0 ? "Nothing is held." : `\n${count} held.`);
  return EXIT.ok;
}

function viewOf(entry: Held, withBody: boolean): Readonly<Record<string, unknown>> {
  const { eventId, flow, tenant, id, event, status, reason, detail, heldAt, replays, steps } = entry;
  const at = new Date(heldAt).toISOString();
  const more = withBody ? { body: bodyOf(entry), history: entry.history } : {};
  return {
    eventId,
    flow,
    tenant,
    id,
    event,
    status,
    reason,
    detail,
    heldAt: at,
    replays,
    handlers: steps,
    ...more,
  };
}

function print(entry: Held, withBody: boolean, { line, paint }: Terminal): void {
  const { eventId, id, event, status, reason, detail, heldAt, replays, steps } = entry;
  const what = [event || "?", status, id].filter(Boolean).join(" ");
  line(`${eventId}  ${paint("yellow", reason)}  ${shown(what)}  ${new Date(heldAt).toISOString()}`);
  if (detail !== null) line(`  ${shown(detail)}`);
  for (const [name, { tries, state, error }] of Object.entries(steps)) {
    line(
      `  ${shown(name)}: ${state}, ${tries} ${tries === 1 ? "try" : "tries"}${error === null ? "" : `, ${shown(error)}`}`,
    );
  }
  if (replays > 0) line(`  replayed ${replays} ${replays === 1 ? "time" : "times"}`);
  if (!withBody) return;
  for (const { at, what: happened, by, note } of entry.history) {
    const who = by === undefined ? "" : ` by ${shown(by)}: ${shown(note ?? "")}`;
    line(`  ${new Date(at).toISOString()} ${shown(happened)}${who}`);
  }
  line(`  ${shown(bodyOf(entry), 100_000)}`);
}

function bodyOf({ delivery }: Held): string {
  return Buffer.from(delivery.rawBody).toString("utf8");
}

async function idsOf(inbox: Inbox, filter: HeldFilter): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { eventId } of inbox.held.list(filter)) ids.push(eventId);
  return ids;
}

/** Decides about each; one that is gone does not keep the others from it. */
async function decide(
  inbox: Inbox,
  action: "replay" | "discard",
  ids: readonly string[],
  decision: Choice,
  terminal: Terminal,
): Promise<number> {
  const done = action === "replay" ? "queued for your application's worker" : "discarded";
  let missing = 0;
  for (const eventId of ids) {
    try {
      if (action === "replay") await inbox.held.replay(eventId, decision);
      else await inbox.held.discard(eventId, { by: decision.by, note: decision.note });
      terminal.json({ eventId, outcome: action === "replay" ? "queued" : "discarded" });
      terminal.line(`${eventId}  ${done}`);
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code !== "ERR_HELD_NOT_FOUND") throw error;
      missing++;
      terminal.json({ eventId, outcome: "not-found" });
      terminal.line(`${shown(eventId)}  ${terminal.paint("red", "is not held")}`);
    }
  }
  if (ids.length === 0) terminal.line("Nothing is held that fits.");
  if (missing === ids.length && missing > 0) {
    throw new CliError(
      "ERR_HELD_NOT_FOUND",
      "None of these events is held.",
      "payhooks held list shows what is.",
    );
  }
  return missing === 0 ? EXIT.ok : EXIT.failure;
}
