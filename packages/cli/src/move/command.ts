import { type MoveReport, moveRecords, type RecordStore } from "@payhooks/core/inbox";
import { canAsk, confirmByTyping } from "../command-line/ask.ts";
import type { Command } from "../command-line/command.ts";
import { EXIT } from "../command-line/errors.ts";
import type { ParsedArguments } from "../command-line/parsed-arguments.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { SEAL_OPTION, sealOf } from "../events/seal-keys.ts";
import { nameOf, openExistingStore, openStore, type StoreAddress } from "./open-store.ts";

export const moveCommand: Command = {
  name: "move",
  summary: "Move the events of one inbox into another",
  usage: ["--from URL|FILE --to URL|FILE [--dry-run] [--yes]"],
  options: {
    from: { value: "URL|FILE", help: "the old inbox: postgres://…, mysql://…, redis://… or a SQLite file" },
    to: { value: "URL|FILE", help: "the new inbox; it is created if it does not exist" },
    "from-prefix": {
      value: "TEXT",
      help: "prefix of the Redis keys or MySQL tables of the old inbox",
      default: "payhooks",
    },
    "from-schema": { value: "NAME", help: "PostgreSQL schema of the old inbox", default: "payhooks" },
    "to-prefix": {
      value: "TEXT",
      help: "prefix of the Redis keys or MySQL tables of the new inbox",
      default: "payhooks",
    },
    "to-schema": { value: "NAME", help: "PostgreSQL schema of the new inbox", default: "payhooks" },
    ...SEAL_OPTION,
    "dry-run": { help: "say what would be moved, and move and create nothing" },
    yes: { help: "do not ask" },
  },
  notes: [
    "Stop every process that uses the old inbox first. Deliveries that arrive in the meantime get no answer, so the service sends them again. If a receiver still runs, the command notices its leases, or a change of an event, and ends with ERR_INBOX_IN_USE.",
    "It moves everything that has not expired: waiting events, held events, and finished events that are kept to recognise copies. It reads each record back from the new inbox before it deletes it in the old one. If it is interrupted, run it again before a receiver starts on either inbox, and it continues. The exit code is 1 if a record had to stay.",
    "On a terminal, it says what would be moved, and asks before it creates or moves anything. In a script, and with --json, it does not ask.",
  ],
  examples: [
    "payhooks move --from payhooks.db --to postgres://shop@127.0.0.1/shop --dry-run",
    "payhooks move --from payhooks.db --to postgres://shop@127.0.0.1/shop",
    "payhooks move --from redis://127.0.0.1:6379 --from-prefix shop --to postgres://shop@127.0.0.1/shop",
  ],
  arguments: { least: 0, most: 0 },
  changes: (args) => !args.flag("dry-run"),
  async run(args, terminal) {
    const from = addressOf(args, "from", "the old inbox");
    const to = addressOf(args, "to", "the new inbox");
    const seal = sealOf(args);
    const over = (store: RecordStore): RecordStore => seal?.wrap(store) ?? store;
    const names = { from: nameOf(from), to: nameOf(to) };
    const source = await openStore(from, true);
    try {
      const isAsked = canAsk(terminal) && !args.flag("yes");
      if (args.flag("dry-run") || isAsked) {
        const { report, toExists } = await plan(over(source), to, over);
        print(report, { ...names, dryRun: true, toExists }, terminal);
        if (args.flag("dry-run")) return exitCodeOf(report);
        if (!(await confirmByTyping(`move ${report.records}`))) {
          terminal.line("Nothing was moved.");
          return EXIT.failure;
        }
      }
      const target = await openStore(to, false);
      try {
        const report = await moveRecords(over(source), over(target));
        print(report, { ...names, dryRun: false }, terminal);
        return exitCodeOf(report);
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  },
};

/** What a move would do. Nothing is created in the new inbox. */
async function plan(
  source: RecordStore,
  to: StoreAddress,
  over: (store: RecordStore) => RecordStore,
): Promise<{ readonly report: MoveReport; readonly toExists: boolean }> {
  const target = await openExistingStore(to);
  try {
    const report = await moveRecords(source, target === null ? null : over(target), { dryRun: true });
    return { report, toExists: target !== null };
  } finally {
    await target?.close();
  }
}

function exitCodeOf({ notMoved }: MoveReport): number {
  return notMoved.length === 0 ? EXIT.ok : EXIT.failure;
}

function addressOf(args: ParsedArguments, end: "from" | "to", purpose: string): StoreAddress {
  return {
    address: args.requiredText(end, purpose),
    prefix: args.text(`${end}-prefix`),
    schema: args.text(`${end}-schema`),
  };
}

const REASON_TEXTS = {
  unreadable: "a newer Payhooks wrote it, its seal is broken, or it is damaged",
  "key-missing": "its key is not in --seal-keys",
  "unreadable-there":
    "the new inbox has a record of it that cannot be read: a newer Payhooks wrote that, it is damaged, its seal is broken, or its key is not in --seal-keys",
  running:
    "a receiver of the new inbox is running it, and the old inbox knows more of it: move again once the run has ended",
  conflict: "both inboxes have it, and each knows something of it that the other does not",
} as const;

function print(
  report: MoveReport,
  facts: {
    readonly from: string;
    readonly to: string;
    readonly dryRun: boolean;
    /** Only of a dry run. */
    readonly toExists?: boolean;
  },
  { json, line, paint }: Terminal,
): void {
  const { records, events, alreadyPresent, notMoved } = report;
  const { from, to, dryRun, toExists } = facts;
  json({ ...facts, ...report });
  line(`${escapeForTerminal(from, 1_000)} → ${escapeForTerminal(to, 1_000)}`);
  const unfinished = events.waiting + events.retrying + events.running;
  const summary = `${unfinished} unfinished, ${events.held} held and ${events.finished} finished events in ${records} records`;
  line(dryRun ? `${summary} would be moved.` : paint("green", `${summary} were moved, and read back.`));
  if (toExists === false) line("The new inbox does not exist yet. It would be created.");
  if (alreadyPresent > 0)
    line(`In the new inbox already, as far or further: ${alreadyPresent} of these records.`);
  for (const { key, why } of notMoved)
    line(`${paint("red", "not moved")}  ${escapeForTerminal(key)}  ${REASON_TEXTS[why]}`);
  if (notMoved.length > 0) {
    line(`${notMoved.length} ${notMoved.length === 1 ? "record stays" : "records stay"} in the old inbox.`);
  }
}
