import type { Inbox } from "@payhooks/core";
import { CliError, EXIT } from "../command-line/errors.ts";
import { Interruption } from "../command-line/interruption.ts";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import type { DecisionKind, Plan } from "./plan.ts";

/** The person who decides, the reason, and the way to replay. */
export interface DecisionOptions {
  readonly by: string;
  readonly note: string;
  readonly handlers?: readonly string[];
  readonly evenIfExpired?: boolean;
  readonly repeatEffects?: boolean;
}

/** The outcome of the decision about one event. */
type DecisionOutcome = "queued" | "discarded" | "not-found" | "changed" | "unknown" | "not-tried";

const OUTCOME_TEXTS: Readonly<Record<DecisionOutcome, string>> = {
  queued: "queued for your application's worker",
  discarded: "discarded",
  "not-found": "is not held: another person may have decided about it already",
  changed: "has changed since it was read: look at it again",
  unknown: "may have been decided, or not: the inbox failed",
  "not-tried": "not tried",
};

const DECIDED_OUTCOMES: ReadonlySet<DecisionOutcome> = new Set<DecisionOutcome>(["queued", "discarded"]);

/**
 * Makes the decision for each event of the plan, as it was read. A missing or changed event is skipped. Ctrl-C, another
 * signal to end, or an error of the inbox stops the rest. Then it says for each event what became of it. Resolves with
 * the exit code.
 */
export async function carryOut(
  inbox: Inbox,
  { decision, entries }: Plan,
  missingIds: readonly string[],
  options: DecisionOptions,
  terminal: Terminal,
): Promise<number> {
  const outcomes: DecisionOutcome[] = [];
  const report = (eventId: string, outcome: DecisionOutcome): void => {
    outcomes.push(outcome);
    terminal.json({ eventId, outcome });
    terminal.line(
      `${escapeForTerminal(eventId)}  ${DECIDED_OUTCOMES.has(outcome) ? OUTCOME_TEXTS[outcome] : terminal.paint("red", OUTCOME_TEXTS[outcome])}`,
    );
  };
  for (const eventId of missingIds) report(eventId, "not-found");
  const interruption = new Interruption();
  let failure: unknown = null;
  for (const { eventId, revision } of entries) {
    if (failure !== null || interruption.signal.aborted) {
      report(eventId, "not-tried");
      continue;
    }
    try {
      report(eventId, await decideOne(inbox, decision, eventId, { ...options, revision }));
    } catch (error) {
      failure = error;
      report(eventId, "unknown");
    }
  }
  interruption.end();
  if (outcomes.length > 1) summarize(outcomes, decision, terminal);
  if (failure !== null) throw failure;
  if (entries.length === 0 && missingIds.length > 0) {
    throw new CliError(
      "ERR_EVENT_NOT_FOUND",
      "None of these events is held.",
      "payhooks events --state held lists the held events.",
    );
  }
  return outcomes.every((outcome) => DECIDED_OUTCOMES.has(outcome)) ? EXIT.ok : EXIT.failure;
}

async function decideOne(
  inbox: Inbox,
  decision: DecisionKind,
  eventId: string,
  options: DecisionOptions & { readonly revision: string },
): Promise<DecisionOutcome> {
  const { by, note, revision } = options;
  try {
    if (decision === "replay") await inbox.events.replay(eventId, options);
    else await inbox.events.discard(eventId, { by, note, revision });
    return decision === "replay" ? "queued" : "discarded";
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "ERR_EVENT_NOT_FOUND" || code === "ERR_NOT_DECIDABLE") return "not-found";
    if (code === "ERR_EVENT_CHANGED") return "changed";
    throw error;
  }
}

function summarize(outcomes: readonly DecisionOutcome[], decision: DecisionKind, { line }: Terminal): void {
  const counts = new Map<DecisionOutcome, number>();
  for (const outcome of outcomes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  line(`\n${[...counts].map(([outcome, count]) => `${count} ${outcome.replace("-", " ")}`).join(", ")}.`);
  if (decision === "replay" && counts.has("queued")) {
    line(
      "Your application runs the queued events. Events that fail again are held again: see payhooks events --state held.",
    );
  }
}
