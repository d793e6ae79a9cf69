import type { ResealReport } from "@payhooks/core/seal";
import type { Command } from "../command-line/command.ts";
import { EXIT, UsageError } from "../command-line/errors.ts";
import { Interruption } from "../command-line/interruption.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { addressOf, INBOX_OPTIONS, INBOX_USAGE } from "../events/open-inbox.ts";
import { sealOf } from "../events/seal-keys.ts";
import { openStore } from "../move/open-store.ts";

const DEFAULT_PER_SECOND = 500;

export const resealCommand: Command = {
  name: "reseal",
  summary: "Seal everything in an inbox anew with the current key",
  usage: [`${INBOX_USAGE} --seal-keys FILE [--rate N] [--dry-run]`],
  options: {
    ...INBOX_OPTIONS,
    rate: {
      value: "N",
      help: "how many records to seal in a second at most",
      default: String(DEFAULT_PER_SECOND),
    },
    "dry-run": { help: "say what would be sealed anew, and write nothing" },
  },
  notes: [
    "Receivers may run meanwhile, and must know the current key already. Records that are stored in the clear are sealed, too.",
    "If it is interrupted, run it again, and it continues. The exit code is 1 if a record had to stay, because its key is missing or it is damaged.",
  ],
  examples: [
    "payhooks reseal --postgres postgres://localhost/shop --seal-keys /run/secrets/inbox-keys --dry-run",
    "payhooks reseal --sqlite payhooks.db --seal-keys inbox-keys --rate 100",
  ],
  arguments: { least: 0, most: 0 },
  changes: (args) => !args.flag("dry-run"),
  async run(args, terminal) {
    const seal = sealOf(args);
    if (seal === undefined) throw new UsageError("--seal-keys is missing: the keys, the current one first.");
    const perSecond = args.number("rate", { min: 1, max: 100_000 }) ?? DEFAULT_PER_SECOND;
    const dryRun = args.flag("dry-run");
    const { kind, text } = addressOf(args);
    const hasPrefix = kind === "Redis" || kind === "MySQL";
    const store = await openStore(
      {
        address: text,
        prefix: hasPrefix ? args.text("prefix") : undefined,
        schema: kind === "PostgreSQL" ? args.text("schema") : undefined,
      },
      true,
    );
    const interruption = new Interruption();
    const { signal } = interruption;
    try {
      const report = await seal.reseal(store, { perSecond, dryRun, signal });
      print(report, dryRun, terminal);
      const isLeft = report.unreadable + Object.keys(report.missing).length > 0;
      return report.complete && !isLeft ? EXIT.ok : EXIT.failure;
    } finally {
      interruption.end();
      await store.close();
    }
  },
};

function print(report: ResealReport, dryRun: boolean, { json, line, paint }: Terminal): void {
  const { keyId, resealed, current, missing, unreadable, complete } = report;
  json({ dryRun, ...report });
  const summary = `${resealed} ${resealed === 1 ? "record" : "records"}`;
  line(
    dryRun
      ? `${summary} would be sealed with ${escapeForTerminal(keyId)}.`
      : paint("green", `${summary} sealed with ${escapeForTerminal(keyId)}.`),
  );
  if (current > 0) line(`${current} had this key before.`);
  for (const [id, count] of Object.entries(missing)) {
    line(`${paint("red", "left")}  ${count} of the key ${escapeForTerminal(id)}, which is not in the file`);
  }
  if (unreadable > 0) line(`${paint("red", "left")}  ${unreadable} that cannot be read`);
  if (!complete) line("It was interrupted. Run it again and it goes on.");
}
