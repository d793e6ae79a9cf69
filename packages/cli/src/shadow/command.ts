import type { ShadowLine } from "@payhooks/core/shadow";
import type { Command } from "../command-line/command.ts";
import { CliError, EXIT } from "../command-line/errors.ts";
import { readText } from "../command-line/input.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { isoTime } from "../events/event.ts";
import { differencesIn, type Report, type ReportEntry, ROWS, type Row, reportOf } from "./report.ts";

const DEFAULT_LIMIT = 20;

export const shadowCommand: Command = {
  name: "shadow",
  summary: "Report how Payhooks in the shadow and your old receiver differ",
  usage: ["JOURNAL.jsonl [OTHER.jsonl …] [--limit N]"],
  options: {
    limit: { value: "N", help: "show at most N events of each row", default: String(DEFAULT_LIMIT) },
  },
  notes: [
    "It reads the journals that shadow() has written in all processes of the old receiver, and changes nothing. A journal may be - for the standard input. docs/guides/moving.md explains each row.",
    "Events are named by their ids, and deliveries without a certain event by the beginning of their body's SHA-256. With --json, each row is a line with all of its events.",
    "The exit code is 1 if there is a difference that you should look at before the switch.",
  ],
  examples: ["payhooks shadow shadow.jsonl", "cat worker-*/shadow.jsonl | payhooks shadow -"],
  arguments: { least: 1, most: 100 },
  async run(args, terminal) {
    const limit = args.number("limit", { min: 1 }) ?? DEFAULT_LIMIT;
    const lines: ShadowLine[] = [];
    for (const path of args.positionals) {
      // A journal may have more lines than a call may have arguments.
      for (const line of linesIn(path, await readText(path))) lines.push(line);
    }
    const report = reportOf(lines);
    print(report, limit, terminal);
    return differencesIn(report).length === 0 ? EXIT.ok : EXIT.failure;
  },
};

/** The lines of a journal. A last line without its end was not written completely, because its process died. */
function linesIn(path: string, text: string): ShadowLine[] {
  const texts = text.split("\n");
  texts.pop();
  return texts.flatMap((line, index) => {
    if (line.trim() === "") return [];
    const shadowLine = readLine(line);
    if (shadowLine !== null) return [shadowLine];
    throw new CliError(
      "ERR_JOURNAL_INVALID",
      `Line ${index + 1} of ${path} is not a line of a shadow's journal.`,
      "Give the files that the journal of shadow() has written, unchanged.",
      EXIT.usage,
    );
  });
}

function readLine(text: string): ShadowLine | null {
  try {
    const line = JSON.parse(text) as Partial<ShadowLine> | null;
    const { type, at } = line ?? {};
    const isKnown = type === "delivery" || type === "handled" || type === "marked";
    return isKnown && typeof at === "number" && line?.event !== undefined ? (line as ShadowLine) : null;
  } catch {
    return null;
  }
}

function print(report: Report, limit: number, { line, json, paint }: Terminal): void {
  const { from, until, deliveries, rows } = report;
  const differences = differencesIn(report);
  json({ from: isoTimeOrNull(from), until: isoTimeOrNull(until), deliveries, differences });
  line(
    `${deliveries} deliveries${from === null ? "" : `, ${isoTimeOrNull(from)} to ${isoTimeOrNull(until)}`}`,
  );
  for (const row of Object.keys(ROWS) as Row[]) {
    const entries = rows[row];
    const { title, advice } = ROWS[row];
    json({ row, title, events: entries.map((entry) => ({ ...entry, at: isoTime(entry.at) })) });
    if (advice === null) {
      line(`${String(entries.length).padStart(6)}  ${title}`);
      continue;
    }
    const isDifferent = entries.length > 0;
    line(`${paint(isDifferent ? "red" : "green", String(entries.length).padStart(6))}  ${title}`);
    if (!isDifferent) continue;
    for (const entry of entries.slice(0, limit)) line(`        ${describe(entry)}`);
    if (entries.length > limit) line(`        … and ${entries.length - limit} more: --limit shows them`);
    line(`        ${advice}`);
  }
  const said =
    differences.length === 0 ? "There is no difference." : "Look at the differences before the switch.";
  line(`\n${said}`);
}

function isoTimeOrNull(at: number | null): string | null {
  return at === null ? null : isoTime(at);
}

function describe({ flow, tenant, id, event, status, eventId, body, why, at }: ReportEntry): string {
  const name = [id, event, status, tenant].filter((text) => text !== null && text !== "").join(" ");
  const subject = id === null ? `${flow} body ${body === "" ? "not given as bytes" : body}` : name;
  const parts = [isoTime(at), subject, why, eventId === null ? null : `event ${eventId}`];
  return parts
    .filter((text) => text !== null)
    .map((text) => escapeForTerminal(String(text)))
    .join("  ");
}
