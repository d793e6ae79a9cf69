import type { Inbox } from "@payhooks/core";
import { HELD_REASONS, type HeldReason, isAboutTruth } from "@payhooks/core/inbox";
import { ask, canAsk } from "../command-line/ask.ts";
import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import { chosen, type Given } from "../command-line/given.ts";
import { shown, type Terminal } from "../command-line/terminal.ts";
import { type Choice, carryOut } from "./carry-out.ts";
import { entryAsJson, printEntry } from "./entry.ts";
import { INBOX_OPTIONS, openInbox } from "./open-inbox.ts";
import { countsOf, type Entry, entryOf, type Plan, planAsJson, printPlanned } from "./plan.ts";
import { eventIdsOf, type Selection, select } from "./selection.ts";

const ACTIONS = ["list", "replay", "discard"] as const;
const REASONS = Object.keys(HELD_REASONS) as HeldReason[];

export const heldCommand: Command = {
  name: "held",
  summary: "List, replay and discard the events that wait for a person",
  usage: [
    "list --redis URL | --sqlite FILE | --postgres URL [--reason REASON] [--flow FLOW] [--id TEXT] [--body]",
    "replay EVENT_ID … | --all --reason REASONS --by NAME --note TEXT [--dry-run] [--yes] [--handlers a,b] [--again] [--even-if-expired] --redis URL | --sqlite FILE | --postgres URL",
    "discard EVENT_ID … | --all --reason REASONS --by NAME --note TEXT [--dry-run] [--yes] --redis URL | --sqlite FILE | --postgres URL",
  ],
  options: {
    ...INBOX_OPTIONS,
    reason: {
      value: "REASONS",
      multiple: true,
      help: `only entries that are held for one of these reasons, with commas between them: ${REASONS.join(", ")}`,
    },
    flow: { value: "FLOW", help: "only entries of payments or connect" },
    tenant: { value: "TENANT", help: "only entries of this tenant" },
    id: { value: "TEXT", help: "only entries whose payTxnId or idempotency_key begins with this text" },
    limit: { value: "N", help: "at most N entries" },
    body: { help: "show the raw body and the history of each entry; bodies hold personal data" },
    all: { help: "replay or discard every entry that matches the filters; needs --reason" },
    "dry-run": { help: "only show what would be replayed or discarded" },
    yes: { help: "do not ask" },
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
    "A decision about all entries, or about one whose reason is a question of what is true (ambiguous, malformed, unexpected, unrecognized, conflict, mismatch, reference-reused, crashed), first shows each of them: its amount, what else is known of its transaction, and what will run. Then it asks. Where nobody can be asked, it needs --yes.",
    "Only what was shown is decided. An event that somebody else has decided about meanwhile, or that has changed, is left alone and named. Ctrl-C finishes the event that is under way, and names those that were not tried.",
    "A replayed event waits again until a process of your application runs it, with the handlers that the process has then. A discarded event is kept and never runs.",
    "EVENT_ID is the first thing that list shows for an event. Its beginning is enough if no other held event begins with it.",
  ],
  examples: [
    "payhooks held list --sqlite payhooks.db --reason exhausted",
    'payhooks held replay 3f0c… --sqlite payhooks.db --by amina --note "bank was down"',
    "payhooks held replay --all --reason exhausted,unhandled --dry-run --sqlite payhooks.db",
    'payhooks held discard --all --reason ambiguous --redis redis://127.0.0.1:6379 --by amina --note "forgeries, checked"',
  ],
  arguments: { least: 1, most: 1_000 },
  changes: (given) => given.positionals[0] !== "list" && !given.flag("dry-run"),
  async run(given, terminal) {
    const [word = "", ...ids] = given.positionals;
    const action = chosen("The action", word, ACTIONS);
    const selection = selectionOf(given);
    const limit = given.number("limit", { min: 1 }) ?? Number.POSITIVE_INFINITY;
    if (action === "list") {
      if (ids.length > 0) throw new UsageError("held list takes no event id.");
      refuse(given, ["all", "dry-run", "yes"], "replay and discard");
    } else checkWhich(given, ids, terminal);
    if (action !== "replay") refuse(given, ["handlers", "again", "even-if-expired"], "replay");
    const choice = action === "list" ? null : choiceOf(given);
    const inbox = await openInbox(given);
    try {
      if (action === "list" || choice === null) {
        return await list(inbox, selection, limit, given.flag("body"), terminal);
      }
      const { entries, missing } = given.flag("all")
        ? { entries: await selected(inbox, selection, limit), missing: [] }
        : await named(inbox, ids);
      const plan: Plan = { action, only: choice.handlers ?? null, entries };
      if (given.flag("dry-run")) return dryRun(plan, missing, terminal);
      if (entries.length + missing.length === 0) terminal.line("Nothing that matches is held.");
      if (!(await isWanted(plan, given, terminal))) {
        terminal.line("Nothing was decided.");
        return EXIT.failure;
      }
      return await carryOut(inbox, plan, missing, choice, terminal);
    } finally {
      await inbox.close({ graceMs: 0 });
    }
  },
};

function refuse(given: Given, options: readonly string[], place: string): void {
  for (const option of options) {
    if (given.flag(option)) throw new UsageError(`--${option} is for ${place}.`);
  }
}

function selectionOf(given: Given): Selection {
  // Every id begins with the empty text. A shell variable that is not set must not discard everything.
  if (given.text("id") === "") throw new UsageError("--id must not be empty.");
  const reasons = given.texts("reason").flatMap((text) => text.split(","));
  return {
    reasons: [...new Set(reasons.map((reason) => chosen("--reason", reason.trim(), REASONS)))],
    flow: given.choice("flow", ["payments", "connect"]),
    tenant: given.text("tenant"),
    id: given.text("id"),
  };
}

/** Checks how a command says which events it is about. */
function checkWhich(given: Given, ids: readonly string[], terminal: Terminal): void {
  const isAll = given.flag("all");
  if (ids.length === 0 && !isAll) {
    throw new UsageError("Name the events (payhooks held list shows their ids), or give --all.");
  }
  if (ids.length > 0 && isAll) throw new UsageError("Give event ids or --all, not both.");
  const filters = ["reason", "flow", "tenant", "id", "limit"].filter((name) => given.flag(name));
  if (ids.length > 0 && filters.length > 0) throw new UsageError(`--${filters[0]} goes with --all.`);
  if (isAll && !given.flag("reason")) {
    throw new UsageError(
      "--all needs the reasons named: --reason exhausted,unhandled",
      "An event that contradicts another one must not run along with those that only failed. payhooks events --count shows how many are held for which reason.",
    );
  }
  if (isAll && !given.flag("dry-run") && !given.flag("yes") && !canAsk(terminal)) throw nobodyToAsk();
}

function nobodyToAsk(): UsageError {
  return new UsageError(
    "Nothing was decided, since nobody can be asked here.",
    "Look at the events with --dry-run, then give --yes.",
  );
}

/** Who decides, and how. A dry run decides nothing, and needs neither a name nor a note. */
function choiceOf(given: Given): Choice {
  if (given.flag("again") && !given.flag("handlers")) throw new UsageError("--again goes with --handlers.");
  const isDry = given.flag("dry-run");
  const by = isDry ? "" : given.required("by", "who decides");
  const note = isDry ? "" : given.required("note", "why");
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

async function selected(inbox: Inbox, selection: Selection, limit: number): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of select(inbox, selection)) {
    const read = await entryOf(inbox, entry);
    if (read !== null) entries.push(read);
    if (entries.length >= limit) break;
  }
  return entries;
}

/** The events that were named, and the ids under which nothing is held. */
async function named(
  inbox: Inbox,
  ids: readonly string[],
): Promise<{ readonly entries: readonly Entry[]; readonly missing: readonly string[] }> {
  const entries: Entry[] = [];
  const missing: string[] = [];
  for (const eventId of await eventIdsOf(inbox, ids)) {
    const entry = await entryOf(inbox, await inbox.read(eventId));
    if (entry === null) missing.push(eventId);
    else entries.push(entry);
  }
  return { entries, missing };
}

/** Shows what a decision is about and asks, unless it is about named events that only failed. */
async function isWanted(plan: Plan, given: Given, terminal: Terminal): Promise<boolean> {
  const { action, entries } = plan;
  const isAsked = given.flag("all") || entries.some(({ reason }) => isAboutTruth(reason));
  if (entries.length === 0 || !isAsked) return true;
  print(plan, terminal);
  if (given.flag("yes")) return true;
  if (!canAsk(terminal)) throw nobodyToAsk();
  const words = `${action} ${entries.length}`;
  return (await ask(`Type ${words} to go on: `)) === words;
}

function print(plan: Plan, terminal: Terminal): void {
  const { action, entries } = plan;
  const now = Date.now();
  for (const entry of entries) printPlanned(entry, plan, now, terminal);
  terminal.line(`\nTo ${action}: ${countsOf(entries)}.`);
}

function dryRun(plan: Plan, missing: readonly string[], terminal: Terminal): number {
  for (const entry of plan.entries) terminal.json(planAsJson(entry, plan));
  for (const eventId of missing) {
    terminal.json({ eventId, outcome: "not-found" });
    terminal.line(`${shown(eventId)}  is not held`);
  }
  if (plan.entries.length > 0) print(plan, terminal);
  else terminal.line("Nothing that matches is held.");
  terminal.line("Nothing was decided.");
  return missing.length === 0 ? EXIT.ok : EXIT.failure;
}
