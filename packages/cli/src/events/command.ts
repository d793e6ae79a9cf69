import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";
import { bulkKindIn, checkBulk, decideInBulk } from "./bulk.ts";
import { type DecisionRequest, decide, decisionRequestOf } from "./decide.ts";
import { list, printCounts, printMetrics, show } from "./list.ts";
import { INBOX_OPTIONS, INBOX_USAGE, openInbox } from "./open-inbox.ts";
import type { DecisionKind } from "./plan.ts";
import { checkHeldReasons, FILTER_NAMES, FILTER_OPTIONS, selectionOf } from "./selection.ts";

const DEFAULT_LIMIT = 50;
const DECISION_OPTION_NAMES = [
  "all",
  "rate",
  "dry-run",
  "yes",
  "by",
  "note",
  "handlers",
  "repeat-effects",
  "even-if-expired",
  "name",
  "unfinished",
] as const;

export const eventsCommand: Command = {
  name: "events",
  summary: "Find, list and count the events of an inbox; replay, retry, discard and erase them",
  usage: [
    `[EVENT_ID …] ${INBOX_USAGE} [--reference TEXT] [--id TEXT] [--tenant TENANT] [--state STATE] [--reason REASONS] [--min-amount AMOUNT] [--max-amount AMOUNT] [--handler NAME] [--newest] [--limit N] [--body] [--csv]`,
    `--count [--prometheus] ${INBOX_USAGE}`,
    `replay EVENT_ID … | --all --reason REASONS --by NAME --note TEXT [--dry-run] [--yes] [--handlers a,b] [--repeat-effects] [--even-if-expired] ${INBOX_USAGE}`,
    `retry EVENT_ID … | --all --by NAME --note TEXT [--rate N] [--dry-run] [--name TEXT --until TIME] ${INBOX_USAGE}`,
    `replay --all --state finished --by NAME --note TEXT [--since TIME] [--rate N] [--dry-run] [--yes] [--handlers a,b] [--repeat-effects] [--name TEXT --until TIME] ${INBOX_USAGE}`,
    `erase EVENT_ID … | --all --state STATE | --reference TEXT | --id TEXT --by NAME [--unfinished] [--rate N] [--dry-run] [--yes] [--name TEXT --until TIME] ${INBOX_USAGE}`,
    `discard EVENT_ID … | --all --reason REASONS --by NAME --note TEXT [--dry-run] [--yes] ${INBOX_USAGE}`,
  ],
  options: {
    ...INBOX_OPTIONS,
    ...FILTER_OPTIONS,
    newest: { help: "list the event that was accepted last first" },
    limit: {
      value: "N",
      help: "at most N events; a decision about --all has no limit",
      default: String(DEFAULT_LIMIT),
    },
    count: { help: "count the events that are not finished, by state and reason, instead of listing them" },
    csv: { help: "print a list as CSV, for a spreadsheet; --json prints it as JSON Lines" },
    prometheus: { help: "with --count: print the counts as metrics in Prometheus's text format" },
    body: { help: "show the fields, the signed text and the history; these contain personal data" },
    all: {
      help: "decide about every event that matches the filters: replay and discard take held events (and need --reason), retry takes events that wait for their next attempt, and replay --state finished and erase take finished events",
    },
    rate: {
      value: "N",
      help: "how many events a second to retry, to erase, or to run again",
      default: "50",
    },
    "dry-run": { help: "only show what would be replayed, retried, discarded or erased" },
    yes: { help: "do not ask" },
    by: { value: "NAME", help: "who decides; kept in the event's history" },
    note: { value: "TEXT", help: "why; kept in the event's history" },
    handlers: {
      value: "NAMES",
      help: "run only these handlers again, even finished ones; separate their names with commas",
    },
    "even-if-expired": {
      help: "replay an event even if it was signed longer ago than windowMs; it may have run before, in a record that has expired",
    },
    name: {
      value: "TEXT",
      help: "continue an interrupted retry, erasure or replay of finished events; with the --until that was printed",
    },
    unfinished: { help: "also erase events that wait or are held; they will never run" },
    "repeat-effects": {
      help: "with --handlers: let the effects of these handlers happen once more, under new ids",
    },
  },
  notes: [
    "With --id, --reference or an EVENT_ID, it shows each event with its copies, its attempts and the decisions about it. The exit code is then 1 if nothing is found.",
    "A date alone means midnight in UTC. A time without a zone is in the time zone of this machine. A decision prints the range of times in UTC before it asks.",
    "--csv prints a table with one row an event: its state, amount, reference, attempts and last error. A text that a spreadsheet would run as a formula begins with an apostrophe. On a terminal, characters that control it or hide text are printed as escapes. Messages about the whole list go to stderr.",
    "Redis keeps no list of finished events, and finds them only by their id. --reference then searches the unfinished and held events, and says so.",
    "Some decisions need a check of what is true: decisions about all events, a replay with --repeat-effects or --even-if-expired, and decisions about an event that is held as ambiguous, malformed, unexpected, unrecognized, conflict, mismatch, reference-reused or crashed. For these, the command first shows each event: its amount, what else is known of its transaction, and what will run. Then it asks. If nobody can answer, as in a script, it needs --yes.",
    "The command decides only about events as it has shown them. If another person has decided about an event meanwhile, or the event has changed, the command skips the event and names it. Ctrl-C finishes the current event, and names the events that were not tried.",
    "retry brings the next attempt of an event forward. After an outage it may be an hour away. It counts like any other attempt. --rate says how many a second are brought forward.",
    "A replayed event waits until a process of your application runs it, with the handlers that this process has then. A discarded event is kept and never runs.",
    "replay --state finished runs events again that have ended, if keep of their flow has kept their signed text. Without --reason it takes only events that are done. It first prints which events it skips, and why. erase takes events of every reason, unless --reason names some.",
    "retry, replay --state finished and erase decide only about the events that they have counted. Later events are not among them. Events that have changed since are left alone, and counted at the end.",
    "retry, replay --state finished and erase print a --name before their first decision, and with --all an --until, too. After an interruption, the same command with these values resumes, and never decides about the same event twice. With --json, the first line has these values, and the last line has the counts; complete is false if there may be more events.",
    "EVENT_ID is in the first column of a list. If the event is held, the beginning of its id is enough, as long as no other held event begins with it.",
  ],
  examples: [
    "payhooks events --reference order-17 --postgres postgres://localhost/shop",
    "payhooks events --sqlite payhooks.db --state held --reason exhausted",
    "payhooks events --postgres postgres://localhost/shop --state finished --newest --limit 20",
    "payhooks events --sqlite payhooks.db --state held --handler ship --min-amount 1000",
    "payhooks events --sqlite payhooks.db --state held --limit 10000 --csv > held.csv",
    "payhooks events --count --redis redis://127.0.0.1:6379",
    'payhooks events replay 3f0c… --sqlite payhooks.db --by amina --note "bank was down"',
    "payhooks events replay --all --reason exhausted,unhandled --dry-run --sqlite payhooks.db",
    'payhooks events retry --all --event DEPOSIT --sqlite payhooks.db --by amina --note "bank is back"',
    "payhooks events replay --all --state finished --event DEPOSIT --since 2d --dry-run --sqlite payhooks.db",
    "payhooks events erase --all --reference order-17 --by amina --sqlite payhooks.db",
    'payhooks events discard --all --reason ambiguous --redis redis://127.0.0.1:6379 --by amina --note "forgeries, checked"',
  ],
  arguments: { least: 0, most: 1_000 },
  changes: (args) => (decisionIn(args) !== null || bulkKindIn(args) !== null) && !args.flag("dry-run"),
  async run(args, terminal) {
    const bulkKind = bulkKindIn(args);
    const decision = bulkKind === null ? decisionIn(args) : null;
    const selection = selectionOf(args);
    if (bulkKind !== null) checkBulk(bulkKind, args, terminal);
    else checkHeldReasons(selection);
    const request: DecisionRequest | null =
      decision === null ? null : decisionRequestOf(decision, args, terminal);
    const limit = args.number("limit", { min: 1 });
    if (request === null && bulkKind === null) checkListOptions(args);
    const inbox = await openInbox(args);
    try {
      if (bulkKind !== null) return await decideInBulk(inbox, bulkKind, selection, args, terminal);
      if (request !== null) return await decide(inbox, request, selection, limit, args, terminal);
      if (args.flag("count")) {
        const counts = await inbox.events.counts();
        if (args.flag("prometheus")) printMetrics(counts, terminal);
        else printCounts(counts, terminal);
        return EXIT.ok;
      }
      const display = { history: args.flag("body"), body: args.flag("body"), csv: args.flag("csv") };
      if (args.positionals.length > 0) return await show(inbox, args.positionals, display, terminal);
      const first = args.flag("newest") ? "newest" : "oldest";
      return await list(inbox, { ...selection, first }, limit ?? DEFAULT_LIMIT, display, terminal);
    } finally {
      await inbox.close({ graceMs: 0 });
    }
  },
};

function decisionIn({ positionals: [word] }: ParsedArguments): DecisionKind | null {
  return word === "replay" || word === "discard" ? word : null;
}

/** Checks the options of a command that only looks. */
function checkListOptions(args: ParsedArguments): void {
  const option = DECISION_OPTION_NAMES.find((name) => args.flag(name));
  if (option !== undefined)
    throw new UsageError(`--${option} is for decisions: replay, retry, discard, erase.`);
  const word = args.positionals.find((text) => !/^[0-9a-f]+(?:…|\.{3})?$/.test(text));
  if (word !== undefined) {
    throw new UsageError(
      `${JSON.stringify(word)} is neither an event id nor one of replay, retry, discard and erase.`,
      "An event id is in the first column of a list.",
    );
  }
  const otherOutput = ["json", "body", "count"].find((name) => args.flag(name));
  if (args.flag("csv") && otherOutput !== undefined)
    throw new UsageError(`Give --csv or --${otherOutput}, not both.`);
  if (args.flag("prometheus") && !args.flag("count")) throw new UsageError("--prometheus is for --count.");
  const filter = [...FILTER_NAMES, "newest", "limit"].find((name) => args.flag(name));
  if (filter === undefined) return;
  if (args.flag("count")) throw new UsageError(`--count counts everything: leave --${filter} out.`);
  if (args.positionals.length > 0) throw new UsageError(`Give event ids or --${filter}, not both.`);
}
