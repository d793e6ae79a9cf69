import type { BulkFilter, BulkOutcome, BulkReport, Inbox, Which } from "@payhooks/core";
import { canAsk, isTyped } from "../command-line/ask.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import type { Given } from "../command-line/given.ts";
import { shown } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { checkAgain, handlersIn, nobodyToAsk } from "./deciding.ts";
import { whatIs } from "./event.ts";
import { eventIdsOf, FILTERS, type Selection } from "./selection.ts";

/** A decision that is carried out event by event, by a filter of the inbox. */
export type Bulk = "replay" | "retry" | "erase";

/** The decision of a command; null for another command. A replay of held events shows each of them first, and is not one of these. */
export function bulkIn(given: Given): Bulk | null {
  const [word] = given.positionals;
  if (word === "erase" || word === "retry") return word;
  return word === "replay" && given.text("state") === "finished" ? word : null;
}

/** Checks the command before its inbox is opened. */
export function checkBulk(bulk: Bulk, given: Given, terminal: Terminal): void {
  const [, ...ids] = given.positionals;
  if ((ids.length === 0) === !given.flag("all")) {
    throw new UsageError("Name the events, or give --all.", HINTS[bulk]);
  }
  const other = [...NOT_FOR_ANY, ...NOT_FOR[bulk]].find((name) => given.flag(name));
  if (other !== undefined) throw new UsageError(`--${other} is not for this ${bulk}.`);
  if (bulk === "retry" && given.flag("state")) {
    throw new UsageError("Only an event that waits for its next attempt can be retried: leave --state out.");
  }
  const filter = [...FILTERS, "name"].find((name) => given.flag(name) && name !== "state");
  if (ids.length > 0 && filter !== undefined) throw new UsageError(`--${filter} goes with --all.`);
  if (given.flag("name") && !given.flag("until")) {
    throw new UsageError(
      "--name needs the --until that was printed with it, so that it is about the same events.",
    );
  }
  if (
    bulk === "erase" &&
    ids.length === 0 &&
    !["state", "id", "reference"].some((name) => given.flag(name))
  ) {
    throw new UsageError("erase --all needs --state, --id or --reference.");
  }
  checkAgain(given);
  if (given.flag("dry-run")) return;
  given.required("by", "who decides");
  if (bulk !== "erase") given.required("note", "why");
  if (isAsked(bulk, given) && !canAsk(terminal)) throw nobodyToAsk();
}

const NOT_FOR_ANY = ["count", "newest", "body", "csv", "limit", "even-if-expired"] as const;
const NOT_FOR: Readonly<Record<Bulk, readonly string[]>> = {
  replay: ["unfinished"],
  retry: ["handlers", "again", "unfinished", "reason"],
  erase: ["handlers", "again"],
};
const HINTS: Readonly<Record<Bulk, string>> = {
  replay: "payhooks events --state finished shows what has ended.",
  retry: "payhooks events --state retrying shows what waits for its next attempt.",
  erase: "payhooks events --reference TEXT shows what is known of a payment.",
};

/** An attempt that comes sooner needs no second thought: it would come anyway. */
function isAsked(bulk: Bulk, given: Given): boolean {
  return bulk !== "retry" && !given.flag("yes");
}

/** Says what the decision would do, asks, and carries it out. Resolves with the exit code. */
export async function decideInBulk(
  inbox: Inbox,
  bulk: Bulk,
  selection: Selection,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const which = await whichOf(inbox, selection, given);
  const carry = carrying(inbox, bulk, which, given);
  const isDry = given.flag("dry-run");
  const planned = await carry({ dryRun: true }, isDry ? tell(terminal) : () => {});
  print(planned, bulk, terminal);
  if (isDry || planned.decided === 0) {
    terminal.line("Nothing was decided.");
    return codeOf(planned, which);
  }
  if (isAsked(bulk, given) && !(await isTyped(`${bulk} ${planned.decided}`))) {
    terminal.line("Nothing was decided.");
    return EXIT.failure;
  }
  const interruption = new AbortController();
  const stop = (): void => interruption.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  // Both looks are about the same events.
  const until = planned.until ?? undefined;
  const report = await carry({ dryRun: false, until, signal: interruption.signal }, tell(terminal));
  process.off("SIGINT", stop).off("SIGTERM", stop);
  terminal.line(`\n${report.decided} ${DONE[bulk]}.`);
  if (report.isWhole) return codeOf(report, which);
  const end = report.until === null ? "" : ` --until ${new Date(report.until).toISOString()}`;
  terminal.line(`It was interrupted. To go on: the same command with --name ${report.name}${end}`);
  return EXIT.failure;
}

const DONE: Readonly<Record<Bulk, string>> = {
  replay: "queued for your application's worker",
  retry: "due now",
  erase: "erased",
};

/** An event that was named, and that is not known or not to be decided about, makes the command fail. */
function codeOf({ leftAlone }: BulkReport, which: Which): number {
  return isFilter(which) || Object.keys(leftAlone).length === 0 ? EXIT.ok : EXIT.failure;
}

function isFilter(which: Which): which is BulkFilter {
  return typeof which !== "string" && !Array.isArray(which);
}

async function whichOf(inbox: Inbox, { query, reasons }: Selection, given: Given): Promise<Which> {
  const [, ...ids] = given.positionals;
  if (ids.length > 0) return eventIdsOf(inbox, ids);
  return { ...query, ...(reasons.length > 0 && { reason: reasons }) };
}

interface Manner {
  readonly dryRun: boolean;
  readonly until?: number | undefined;
  readonly signal?: AbortSignal;
}

type Progress = (outcome: BulkOutcome) => void;

/** Carries the decision out in one manner or another. */
function carrying(
  { events }: Inbox,
  bulk: Bulk,
  which: Which,
  given: Given,
): (manner: Manner, progress: Progress) => Promise<BulkReport> {
  const perSecond = given.number("rate", { min: 1, max: 10_000 });
  const name = given.text("name");
  const [by, note] = [given.text("by") ?? "", given.text("note") ?? ""];
  const handlers = handlersIn(given);
  return ({ dryRun, until, signal }, progress) => {
    const options = { by, dryRun, signal, perSecond, name, progress };
    const list = isFilter(which) && until !== undefined ? { ...which, until } : which;
    if (bulk === "erase") return events.erase(list, { ...options, unfinished: given.flag("unfinished") });
    if (bulk === "retry") return events.retryNow(list, { ...options, note });
    return events.replay(list, { ...options, note, handlers, again: given.flag("again") });
  };
}

function tell({ json, line }: Terminal): Progress {
  return ({ eventId, outcome, reason, event }) => {
    json({ eventId, outcome, reason });
    const what = event === null || event.erasedAt !== null ? "" : `  ${shown(whatIs(event))}`;
    line(`${shown(eventId)}${what}  ${outcome}`);
  };
}

/** Prints the counts of a decision that may follow, by reason, and of the events that it leaves alone. */
function print(
  { decided, byReason, leftAlone, leftOut, known }: BulkReport,
  bulk: Bulk,
  { line }: Terminal,
): void {
  line(`\nTo ${bulk}: ${decided}${decided === 0 ? "" : ` (${listed(byReason)})`}.`);
  if (known > 0) line(`Decided before under this name: ${known}.`);
  if (Object.keys(leftAlone).length > 0) line(`Left alone: ${listed(leftAlone)}.`);
  if (Object.keys(leftOut).length > 0)
    line(`Left out, since --reason does not name them: ${listed(leftOut)}.`);
}

function listed(counts: Readonly<Record<string, number | undefined>>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ");
}
