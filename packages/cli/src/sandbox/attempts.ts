import type { Attempt, Delivery, Sandbox } from "@payhooks/sandbox";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";

/**
 * Prints a line for each attempt of the sandbox to deliver something: the delivery, the answer, and the time it took.
 */
export function printAttempts(sandbox: Sandbox, terminal: Terminal): void {
  const shownHints = new Set<string>();
  sandbox.deliveries.onAttempt((delivery, attempt) => {
    terminal.json({ event: "attempt", ...attemptAsJson(delivery, attempt) });
    terminal.line(lineOf(delivery, attempt, terminal));
    const hint = hintFor(delivery, attempt);
    if (hint === null || shownHints.has(hint)) return;
    shownHints.add(hint);
    terminal.line(`  ${hint}`);
  });
}

/** Advice for the case that deliveries do not reach the receiver at all. */
function hintFor({ flow, url }: Delivery, { answer, error }: Attempt): string | null {
  const address = escapeForTerminal(url);
  if (error?.includes("ECONNREFUSED")) {
    return `Nothing listens at ${address}. Start your server, or say with --app URL where it listens.`;
  }
  if (answer?.status !== 404) return null;
  const option = flow === "payments" ? "--callback-url" : "--webhook-url";
  return `There is nothing at ${address}. Mount the receiver there, or say with ${option} URL where it is.`;
}

/** The attempt without its body and its signature. The dashboard and the control API show these. */
function attemptAsJson(delivery: Delivery, attempt: Attempt): Readonly<Record<string, unknown>> {
  const { id, flow, event, status, reference, deduplicationKey, url, state, nextAttemptAt, replayOf } =
    delivery;
  const { number, at, answer, error, acknowledged, durationMs, faults } = attempt;
  return {
    delivery: { id, flow, event, status, reference, deduplicationKey, url, state, nextAttemptAt, replayOf },
    attempt: { number, at, answer, error, acknowledged, durationMs, faults },
  };
}

function lineOf(delivery: Delivery, attempt: Attempt, { paint }: Terminal): string {
  const { flow, event, status, reference, deduplicationKey, replayOf } = delivery;
  const { at, number, faults, acknowledged, durationMs } = attempt;
  const subject =
    flow === "payments"
      ? `${event} ${status} ${escapeForTerminal(reference ?? "")}`
      : `${event} ${deduplicationKey}`;
  const remarks = [
    replayOf === null ? "" : "replay",
    number === 1 ? "" : `attempt ${number}`,
    ...faults.map((fault) => `fault: ${fault}`),
  ].filter(Boolean);
  const marks = remarks.length === 0 ? "" : ` (${remarks.join(", ")})`;
  const time = paint("dim", new Date(at).toTimeString().slice(0, 8));
  const outcome = paint(acknowledged ? "green" : "red", outcomeOf(attempt));
  return `${time} ${subject}${marks} → ${outcome} ${paint("dim", `${Math.round(durationMs)} ms`)}${nextOf(delivery, attempt)}`;
}

function outcomeOf({ answer, error, acknowledged }: Attempt): string {
  if (answer === null) return `no answer: ${escapeForTerminal(error ?? "")}`;
  if (acknowledged) return String(answer.status);
  return `${answer.status} ${escapeForTerminal(error ?? answer.bodyExcerpt, 120)}`.trimEnd();
}

function nextOf({ state, nextAttemptAt }: Delivery, { acknowledged, at, durationMs }: Attempt): string {
  if (acknowledged) return "";
  if (state === "gave-up") return ", given up";
  if (nextAttemptAt === null) return "";
  const seconds = (Date.parse(nextAttemptAt) - Date.parse(at) - durationMs) / 1_000;
  return `, again in ${Math.max(0, seconds).toFixed(1)} s`;
}
