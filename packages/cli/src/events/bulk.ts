import { randomUUID } from "node:crypto";
import type { BulkFilter, BulkOutcome, BulkReport, EventSelection, Inbox } from "@payhooks/core";
import { canAsk, confirmByTyping } from "../command-line/ask.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import { Interruption } from "../command-line/interruption.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import { quoteForShell } from "../command-line/shell.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { cannotConfirmError, checkRepeatEffects, handlersIn } from "./decision-options.ts";
import { describeEvent, isoTime } from "./event.ts";
import { eventIdsOf, FILTER_NAMES, printRange, type Selection } from "./selection.ts";
import { checkAllRead, printUnreadable } from "./unreadable.ts";

/** A decision that is carried out event by event, by a filter of the inbox. */
export type BulkKind = "replay" | "retry" | "erase";

/**
 * The decision of a command; null for another command. A replay of held events shows each of them first, and is not one of these.
 */
export function bulkKindIn(args: ParsedArguments): BulkKind | null {
  const [word] = args.positionals;
  if (word === "erase" || word === "retry") return word;
  return word === "replay" && args.text("state") === "finished" ? word : null;
}

/** Checks the command before its inbox is opened. */
export function checkBulk(kind: BulkKind, args: ParsedArguments, terminal: Terminal): void {
  const [, ...ids] = args.positionals;
  if ((ids.length === 0) === !args.flag("all")) {
    throw new UsageError("Name the events, or give --all.", HINTS[kind]);
  }
  const forbiddenOption = [...FORBIDDEN_OPTIONS, ...FORBIDDEN_OPTIONS_BY_KIND[kind]].find((name) =>
    args.flag(name),
  );
  if (forbiddenOption !== undefined) throw new UsageError(`--${forbiddenOption} is not for this ${kind}.`);
  if (kind === "retry" && args.flag("state")) {
    throw new UsageError("Only an event that waits for its next attempt can be retried: leave --state out.");
  }
  const filter = FILTER_NAMES.find((name) => args.flag(name) && name !== "state");
  if (ids.length > 0 && filter !== undefined) throw new UsageError(`--${filter} goes with --all.`);
  // With an unset shell variable, all such decisions would share one name.
  if (args.text("name") === "") throw new UsageError("--name must not be empty.");
  if (args.flag("name") && args.flag("all") && !args.flag("until")) {
    throw new UsageError(
      "--name needs the --until that was printed with it, so that it is about the same events.",
    );
  }
  if (kind === "erase" && ids.length === 0 && !["state", "id", "reference"].some((name) => args.flag(name))) {
    throw new UsageError("erase --all needs --state, --id or --reference.");
  }
  checkRepeatEffects(args);
  if (args.flag("dry-run")) return;
  args.requiredText("by", "who decides");
  if (kind !== "erase") args.requiredText("note", "why");
  if (needsConfirmation(kind, args) && !canAsk(terminal)) throw cannotConfirmError();
}

const FORBIDDEN_OPTIONS = ["count", "newest", "body", "csv", "limit", "even-if-expired"] as const;
const FORBIDDEN_OPTIONS_BY_KIND: Readonly<Record<BulkKind, readonly string[]>> = {
  replay: ["unfinished"],
  retry: ["handlers", "repeat-effects", "unfinished", "reason"],
  erase: ["handlers", "repeat-effects"],
};
const HINTS: Readonly<Record<BulkKind, string>> = {
  replay: "payhooks events --state finished lists the events that have ended.",
  retry: "payhooks events --state retrying lists the events that wait for their next attempt.",
  erase: "payhooks events --reference TEXT lists the events of a payment.",
};

/** An attempt that comes sooner needs no second thought: it would come anyway. */
function needsConfirmation(kind: BulkKind, args: ParsedArguments): boolean {
  return kind !== "retry" && !args.flag("yes");
}

/** Prints what the decision would do, asks, and carries it out. Resolves with the exit code. */
export async function decideInBulk(
  inbox: Inbox,
  kind: BulkKind,
  selection: Selection,
  args: ParsedArguments,
  terminal: Terminal,
): Promise<number> {
  const target = await targetOf(inbox, selection, args);
  const { since } = selection.query;
  const runBulk = bulkRunner(inbox, kind, target, args);
  const isDry = args.flag("dry-run");
  const givenName = args.text("name");
  const countedIds: string[] = [];
  const otherOutcomes: BulkOutcome[] = [];
  const plannedReport = await runBulk({ name: givenName, dryRun: true }, (result) => {
    if (isDry) printOutcome(terminal)(result);
    else if (result.outcome === "decided") countedIds.push(result.eventId);
    else if (!isFilter(target)) otherOutcomes.push(result);
  });
  terminal.line();
  printRange(selection, terminal);
  printReport(plannedReport, kind, terminal);
  if (isDry || plannedReport.decided === 0) {
    terminal.line("Nothing was decided.");
    terminal.json(reportAsJson(plannedReport, since));
    return exitCodeOf(plannedReport, target);
  }
  printUnreadable(plannedReport.unreadable, terminal);
  if (needsConfirmation(kind, args) && !(await confirmByTyping(`${kind} ${plannedReport.decided}`))) {
    terminal.line("Nothing was decided.");
    return EXIT.failure;
  }
  // Printed before the first decision, because the process may be killed at any moment.
  const { until } = plannedReport;
  const name = givenName ?? randomUUID();
  const continuation = `the same command with ${continuationOptions(name, until, since)}`;
  terminal.json(reportAsJson({ name, until }, since));
  terminal.line(`If this is interrupted, continue with ${continuation}\n`);
  const interruption = new Interruption();
  const { signal } = interruption;
  for (const result of otherOutcomes) printOutcome(terminal)(result);
  // By now, more events may match, and some of those that were counted may have changed.
  const decidedReport = await runBulk(
    { name, until, signal, dryRun: false, eventIds: countedIds },
    printOutcome(terminal),
  )
    .catch((error: unknown) => {
      terminal.line(`\nIt failed. Continue with ${continuation}`);
      throw error;
    })
    .finally(() => interruption.end());
  const report = mergeReports(plannedReport, decidedReport);
  terminal.json(reportAsJson(report, since));
  terminal.line(`\n${report.decided} ${DONE_TEXTS[kind]}.`);
  const leftCounts = { ...decidedReport.excluded, ...decidedReport.skipped };
  if (Object.keys(leftCounts).length > 0)
    terminal.line(
      `Left alone, because they have changed since they were counted: ${countsText(leftCounts)}.`,
    );
  if (report.complete) return exitCodeOf(report, target);
  terminal.line(`It was interrupted. Continue with ${continuation}`);
  return EXIT.failure;
}

/** The report of a decision about the events that were counted, with those that the count had left out. */
function mergeReports(plannedReport: BulkReport, decidedReport: BulkReport): BulkReport {
  return {
    ...decidedReport,
    found: plannedReport.found,
    alreadyDecided: plannedReport.alreadyDecided + decidedReport.alreadyDecided,
    skipped: addCounts(plannedReport.skipped, decidedReport.skipped),
    excluded: addCounts(plannedReport.excluded, decidedReport.excluded),
    unreadable: plannedReport.unreadable ?? decidedReport.unreadable,
  };
}

type Counts<Name extends string> = Readonly<Partial<Record<Name, number>>>;

function addCounts<Name extends string>(one: Counts<Name>, other: Counts<Name>): Counts<Name> {
  const counts: Partial<Record<Name, number>> = { ...one };
  for (const name of Object.keys(other) as Name[]) counts[name] = (counts[name] ?? 0) + (other[name] ?? 0);
  return counts;
}

/** The options that make the same command go on. A `--since` of `2d` would mean another time by then. */
function continuationOptions(name: string, until: number | null, since: number | undefined): string {
  const times = { until, since };
  const timeOptions = Object.entries(times).flatMap(([option, ms]) =>
    ms == null ? [] : `--${option} ${isoTime(ms)}`,
  );
  return [`--name ${quoteForShell(name)}`, ...timeOptions].join(" ");
}

/** A report, or its beginning, with its times as options take them. */
function reportAsJson(
  { name, until, unreadable: _, ...others }: Pick<BulkReport, "name" | "until"> & Partial<BulkReport>,
  since: number | undefined,
): object {
  const text = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));
  return { name, until: text(until), since: text(since ?? null), ...others };
}

const DONE_TEXTS: Readonly<Record<BulkKind, string>> = {
  replay: "queued for your application's worker",
  retry: "due now",
  erase: "erased",
};

/** The command fails if a named event is unknown, cannot be decided about, or cannot be read. */
function exitCodeOf({ skipped, unreadable }: BulkReport, which: EventSelection): number {
  checkAllRead(unreadable);
  return isFilter(which) || Object.keys(skipped).length === 0 ? EXIT.ok : EXIT.failure;
}

function isFilter(which: EventSelection): which is BulkFilter {
  return typeof which !== "string" && !Array.isArray(which);
}

async function targetOf(
  inbox: Inbox,
  { query, reasons }: Selection,
  args: ParsedArguments,
): Promise<EventSelection> {
  const [, ...ids] = args.positionals;
  if (ids.length > 0) return eventIdsOf(inbox, ids);
  return { ...query, ...(reasons.length > 0 && { reason: reasons }) };
}

interface BulkScope {
  readonly name: string | undefined;
  readonly dryRun: boolean;
  readonly until?: number | null;
  readonly signal?: AbortSignal;
  /** Of all these events, only those. */
  readonly eventIds?: readonly string[];
}

type ProgressListener = (outcome: BulkOutcome) => void;

/** Carries the decision out, about the events of a scope. */
function bulkRunner(
  { events }: Inbox,
  kind: BulkKind,
  target: EventSelection,
  args: ParsedArguments,
): (scope: BulkScope, progress: ProgressListener) => Promise<BulkReport> {
  const perSecond = args.number("rate", { min: 1, max: 10_000 });
  const [by, note] = [args.text("by") ?? "", args.text("note") ?? ""];
  const handlers = handlersIn(args);
  return ({ until = null, eventIds, ...scope }, progress) => {
    const options = { by, perSecond, progress, ...scope };
    const list = isFilter(target)
      ? { ...target, ...(until !== null && { until }), eventIds }
      : (eventIds ?? target);
    if (kind === "erase") return events.erase(list, { ...options, unfinished: args.flag("unfinished") });
    if (kind === "retry") return events.retryNow(list, { ...options, note });
    return events.replay(list, { ...options, note, handlers, repeatEffects: args.flag("repeat-effects") });
  };
}

function printOutcome({ json, line }: Terminal): ProgressListener {
  return ({ eventId, outcome, reason, event }) => {
    json({ eventId, outcome, reason });
    const description =
      event === null || event.erasedAt !== null ? "" : `  ${escapeForTerminal(describeEvent(event))}`;
    line(`${escapeForTerminal(eventId)}${description}  ${outcome}`);
  };
}

/** Prints the counts of a decision that may follow, by reason, and of the events that it skips. */
function printReport(
  { decided, byReason, skipped, excluded, alreadyDecided }: BulkReport,
  kind: BulkKind,
  { line }: Terminal,
): void {
  line(`To ${kind}: ${decided}${decided === 0 ? "" : ` (${countsText(byReason)})`}.`);
  if (alreadyDecided > 0) line(`Decided before under this name: ${alreadyDecided}.`);
  if (Object.keys(skipped).length > 0) line(`Skipped: ${countsText(skipped)}.`);
  if (Object.keys(excluded).length > 0)
    line(`Excluded, because --reason does not name them: ${countsText(excluded)}.`);
}

function countsText(counts: Readonly<Record<string, number | undefined>>): string {
  return Object.entries(counts)
    .map(([outcome, count]) => `${count} ${outcome}`)
    .join(", ");
}
