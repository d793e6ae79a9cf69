import type { Inbox } from "@payhooks/core";
import { needsInvestigation } from "@payhooks/core/events";
import { canAsk, confirmByTyping } from "../command-line/ask.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { carryOut, type DecisionOptions } from "./carry-out.ts";
import { cannotConfirmError, checkRepeatEffects, handlersIn } from "./decision-options.ts";
import {
  countsOf,
  type DecisionKind,
  entryOf,
  type Plan,
  type PlanEntry,
  planAsJson,
  printPlanEntry,
} from "./plan.ts";
import { eventIdsOf, FILTER_NAMES, printRange, type Selection, select } from "./selection.ts";
import { UnreadableCounter } from "./unreadable.ts";

/** A decision, and the events that it is about. */
export interface DecisionRequest {
  readonly decision: DecisionKind;
  /** Empty: about all that match. */
  readonly ids: readonly string[];
  readonly options: DecisionOptions;
}

/** Reads a decision from the command line. */
export function decisionRequestOf(
  decision: DecisionKind,
  args: ParsedArguments,
  terminal: Terminal,
): DecisionRequest {
  const [, ...ids] = args.positionals;
  checkWhich(args, ids);
  refuseOptions(args, ["count", "newest", "body", "csv"], "lists");
  refuseOptions(args, ["name", "unfinished", "rate"], "retry, erase, and a replay of finished events");
  if (decision !== "replay") refuseOptions(args, ["handlers", "repeat-effects", "even-if-expired"], "replay");
  const options = decisionOptionsOf(args);
  if (isAlwaysAsked(args) && !args.flag("dry-run") && !args.flag("yes") && !canAsk(terminal))
    throw cannotConfirmError();
  return { decision, ids, options };
}

/** True if it is asked whatever the events are held for: it is about all of them, or may let happen again what has happened. */
function isAlwaysAsked(args: ParsedArguments): boolean {
  return ["all", "repeat-effects", "even-if-expired"].some((name) => args.flag(name));
}

/** Shows the events of the decision, asks, and carries it out. Resolves with the exit code. */
export async function decide(
  inbox: Inbox,
  { decision, ids, options }: DecisionRequest,
  selection: Selection,
  limit: number | undefined,
  args: ParsedArguments,
  terminal: Terminal,
): Promise<number> {
  const unreadable = new UnreadableCounter();
  const { entries, missingIds } =
    ids.length === 0
      ? {
          entries: await readSelectedEntries(inbox, selection, limit ?? Number.POSITIVE_INFINITY, unreadable),
          missingIds: [],
        }
      : await readNamedEntries(inbox, ids);
  if (entries.length === 0) unreadable.check();
  const plan: Plan = { decision, only: options.handlers ?? null, entries };
  if (args.flag("dry-run")) {
    const code = printDryRun(plan, missingIds, selection, terminal);
    unreadable.check();
    return code;
  }
  if (entries.length + missingIds.length === 0) terminal.line("Nothing that matches is held.");
  if (!(await isConfirmed(plan, unreadable, selection, args, terminal))) {
    terminal.line("Nothing was decided.");
    return EXIT.failure;
  }
  const code = await carryOut(inbox, plan, missingIds, options, terminal);
  unreadable.check();
  return code;
}

function refuseOptions(args: ParsedArguments, options: readonly string[], use: string): void {
  for (const option of options) {
    if (args.flag(option)) throw new UsageError(`--${option} is for ${use}.`);
  }
}

/** Checks how a command says which events it is about. */
function checkWhich(args: ParsedArguments, ids: readonly string[]): void {
  const isAll = args.flag("all");
  if (args.flag("state") && args.text("state") !== "held")
    throw new UsageError(
      "Only held events can be decided about, and only held or finished events replayed: leave --state out, or say finished.",
    );
  if (ids.length === 0 && !isAll) {
    throw new UsageError("Name the events (payhooks events --state held shows their ids), or give --all.");
  }
  if (ids.length > 0 && isAll) throw new UsageError("Give event ids or --all, not both.");
  const filters = [...FILTER_NAMES, "limit"].filter((name) => args.flag(name));
  if (ids.length > 0 && filters.length > 0) throw new UsageError(`--${filters[0]} goes with --all.`);
  if (isAll && !args.flag("reason")) {
    throw new UsageError(
      "--all needs the reasons named: --reason exhausted,unhandled",
      "An event that contradicts another one must not run along with those that only failed. payhooks events --count shows how many are held for which reason.",
    );
  }
}

/** The person who decides, and how. A dry run decides nothing, and needs neither a name nor a note. */
function decisionOptionsOf(args: ParsedArguments): DecisionOptions {
  checkRepeatEffects(args);
  const handlers = handlersIn(args);
  const isDry = args.flag("dry-run");
  const by = isDry ? "" : args.requiredText("by", "who decides");
  const note = isDry ? "" : args.requiredText("note", "why");
  return {
    by,
    note,
    ...(handlers !== undefined && { handlers }),
    ...(args.flag("even-if-expired") && { evenIfExpired: true }),
    ...(args.flag("repeat-effects") && { repeatEffects: true }),
  };
}

async function readSelectedEntries(
  inbox: Inbox,
  selection: Selection,
  limit: number,
  unreadable: UnreadableCounter,
): Promise<readonly PlanEntry[]> {
  const entries: PlanEntry[] = [];
  const query = { ...selection.query, state: "held" } as const;
  for await (const entry of select(inbox, { ...selection, query }, unreadable)) {
    const planEntry = await entryOf(inbox, entry);
    if (planEntry !== null) entries.push(planEntry);
    if (entries.length >= limit) break;
  }
  return entries;
}

/** The events that were named, and the ids under which nothing is held. */
async function readNamedEntries(
  inbox: Inbox,
  ids: readonly string[],
): Promise<{ readonly entries: readonly PlanEntry[]; readonly missingIds: readonly string[] }> {
  const entries: PlanEntry[] = [];
  const missingIds: string[] = [];
  for (const eventId of await eventIdsOf(inbox, ids)) {
    const entry = await entryOf(inbox, await inbox.events.get(eventId));
    if (entry === null) missingIds.push(eventId);
    else entries.push(entry);
  }
  return { entries, missingIds };
}

/** Shows the events of a decision and asks, unless it is about named events that only failed. */
async function isConfirmed(
  plan: Plan,
  unreadable: UnreadableCounter,
  selection: Selection,
  args: ParsedArguments,
  terminal: Terminal,
): Promise<boolean> {
  const { decision, entries } = plan;
  const isAsked = isAlwaysAsked(args) || entries.some(({ reason }) => needsInvestigation(reason));
  if (entries.length === 0 || !isAsked) return true;
  printPlan(plan, selection, terminal);
  unreadable.print(terminal);
  if (args.flag("yes")) return true;
  if (!canAsk(terminal)) throw cannotConfirmError();
  return confirmByTyping(`${decision} ${entries.length}`);
}

function printPlan(plan: Plan, selection: Selection, terminal: Terminal): void {
  const { decision, entries } = plan;
  const now = Date.now();
  for (const entry of entries) printPlanEntry(entry, plan, now, terminal);
  terminal.line();
  printRange(selection, terminal);
  terminal.line(`To ${decision}: ${countsOf(entries)}.`);
}

function printDryRun(
  plan: Plan,
  missingIds: readonly string[],
  selection: Selection,
  terminal: Terminal,
): number {
  for (const entry of plan.entries) terminal.json(planAsJson(entry, plan));
  for (const eventId of missingIds) {
    terminal.json({ eventId, outcome: "not-found" });
    terminal.line(`${escapeForTerminal(eventId)}  is not held`);
  }
  if (plan.entries.length > 0) printPlan(plan, selection, terminal);
  else terminal.line("Nothing that matches is held.");
  terminal.line("Nothing was decided.");
  return missingIds.length === 0 ? EXIT.ok : EXIT.failure;
}
