import type { Inbox } from "@payhooks/core";
import { HELD_REASONS, type HeldReason } from "@payhooks/core/inbox";
import type { Command } from "../command-line/command.ts";
import { CliError, EXIT, UsageError } from "../command-line/errors.ts";
import { chosen, type Given } from "../command-line/given.ts";
import { shown } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { entryAsJson, printEntry } from "./entry.ts";
import { INBOX_OPTIONS, openInbox } from "./open-inbox.ts";
import { eventIdsOf, type Selection, select } from "./selection.ts";

const ACTIONS = ["list", "replay", "discard"] as const;
const REASONS = Object.keys(HELD_REASONS) as HeldReason[];

export const heldCommand: Command = {
  name: "held",
  summary: "List, replay and discard the events that wait for a person",
  usage: [
    "list --redis URL | --sqlite FILE | --postgres URL [--reason REASON] [--flow FLOW] [--id TEXT] [--body]",
    "replay EVENT_ID … | --all --by NAME --note TEXT [--handlers a,b] [--again] [--even-if-expired] --redis URL | --sqlite FILE | --postgres URL",
    "discard EVENT_ID … | --all --by NAME --note TEXT --redis URL | --sqlite FILE | --postgres URL",
  ],
  options: {
    ...INBOX_OPTIONS,
    reason: { value: "REASON", help: `only entries that are held for this reason: ${REASONS.join(", ")}` },
    flow: { value: "FLOW", help: "only entries of payments or connect" },
    tenant: { value: "TENANT", help: "only entries of this tenant" },
    id: { value: "TEXT", help: "only entries whose payTxnId or idempotency_key begins with this text" },
    limit: { value: "N", help: "at most N entries" },
    body: { help: "show the raw body and the history of each entry; bodies hold personal data" },
    all: { help: "replay or discard every entry that matches the filters" },
    by: { value: "NAME", help: "who decides; kept in the entry's history" },
    note: { value: "TEXT", help: "why; kept in the entry's history" },
    handlers: {
      value: "NAMES",
      help: "run only these handlers again, even finished ones; separate their names with commas",
    },
    "even-if-expired": {
      help: "replay an entry even if it was signed longer ago than windowMs, when its event may have run already and been forgotten",
    },
    again: { help: "with --handlers: let the effects of these handlers happen once more, under new ids" },
  },
  notes: [
    "A replayed event waits again until a process of your application runs it, with the handlers that the process has then. A discarded event is kept and never runs.",
    "EVENT_ID is the first thing that list shows for an event. Its beginning is enough if no other held event begins with it.",
  ],
  examples: [
    "payhooks held list --sqlite payhooks.db --reason exhausted",
    'payhooks held replay 3f0c… --sqlite payhooks.db --by amina --note "bank was down"',
    'payhooks held discard --all --reason ambiguous --redis redis://127.0.0.1:6379 --by amina --note "forgeries, checked"',
  ],
  arguments: { least: 1, most: 1_000 },
  changes: ({ positionals }) => positionals[0] !== "list",
  async run(given, terminal) {
    const [word = "", ...ids] = given.positionals;
    const action = chosen("The action", word, ACTIONS);
    const selection = selectionOf(given);
    const limit = given.number("limit", { min: 1 }) ?? Number.POSITIVE_INFINITY;
    const decision = action === "list" ? null : decisionOf(given, ids);
    if (action === "list" && ids.length > 0) throw new UsageError("held list takes no event id.");
    for (const option of ["handlers", "again", "even-if-expired"]) {
      if (action !== "replay" && given.flag(option)) throw new UsageError(`--${option} is for replay.`);
    }
    const inbox = await openInbox(given);
    try {
      if (decision === null) return await list(inbox, selection, limit, given.flag("body"), terminal);
      const eventIds = given.flag("all")
        ? await selectedIds(inbox, selection, limit)
        : await eventIdsOf(inbox, ids);
      return await decide(inbox, action as "replay" | "discard", eventIds, decision, terminal);
    } finally {
      await inbox.close({ graceMs: 0 });
    }
  },
};

interface Choice {
  readonly by: string;
  readonly note: string;
  readonly handlers?: readonly string[];
  readonly evenIfExpired?: boolean;
  readonly again?: boolean;
}

function selectionOf(given: Given): Selection {
  // Every id begins with the empty text. A shell variable that is not set must not discard everything.
  if (given.text("id") === "") throw new UsageError("--id must not be empty.");
  return {
    reason: given.choice("reason", REASONS),
    flow: given.choice("flow", ["payments", "connect"]),
    tenant: given.text("tenant"),
    id: given.text("id"),
  };
}

function decisionOf(given: Given, ids: readonly string[]): Choice {
  if (ids.length === 0 && !given.flag("all")) {
    throw new UsageError("Name the events (payhooks held list shows their ids), or give --all.");
  }
  if (ids.length > 0 && given.flag("all")) throw new UsageError("Give event ids or --all, not both.");
  const filters = ["reason", "flow", "tenant", "id", "limit"].filter((name) => given.flag(name));
  if (ids.length > 0 && filters.length > 0) throw new UsageError(`--${filters[0]} goes with --all.`);
  if (given.flag("again") && !given.flag("handlers")) throw new UsageError("--again goes with --handlers.");
  const by = given.required("by", "who decides");
  const note = given.required("note", "why");
  const handlers = given
    .text("handlers")
    ?.split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  return {
    by,
    note,
    ...(handlers !== undefined && { handlers }),
    ...(given.flag("even-if-expired") && { evenIfExpired: true }),
    ...(given.flag("again") && { again: true }),
  };
}

async function list(
  inbox: Inbox,
  selection: Selection,
  limit: number,
  withBody: boolean,
  terminal: Terminal,
): Promise<number> {
  let count = 0;
  for await (const entry of select(inbox, selection)) {
    count++;
    if (count > limit) continue;
    terminal.json(entryAsJson(entry, withBody));
    printEntry(entry, withBody, terminal);
  }
  const total = count > limit ? `${limit} of ${count} held are shown.` : `${count} held.`;
  terminal.line(count === 0 ? "Nothing is held." : `\n${total}`);
  return EXIT.ok;
}

async function selectedIds(inbox: Inbox, selection: Selection, limit: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { eventId } of select(inbox, selection)) {
    ids.push(eventId);
    if (ids.length >= limit) break;
  }
  return ids;
}

/** Makes the decision for each event. An event that is gone does not stop the others. */
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
  if (ids.length === 0) terminal.line("Nothing that matches is held.");
  if (missing === ids.length && missing > 0) {
    throw new CliError(
      "ERR_HELD_NOT_FOUND",
      "None of these events is held.",
      "payhooks held list shows what is.",
    );
  }
  return missing === 0 ? EXIT.ok : EXIT.failure;
}
