import type { DecidableEvent } from "../answers.ts";
import { post } from "./post.ts";

/** Reasons whose events are read again, and then enter as new events. */
const REREAD_REASONS: ReadonlySet<string> = new Set(["ambiguous", "malformed", "unexpected", "unrecognized"]);
/** Reasons of events that were not held before. */
const ENDED_REASONS: ReadonlySet<string> = new Set(["done", "discarded"]);
/** How long the dialog waits for the handlers of replayed events. */
const MAX_POLLS = 10;
const POLL_INTERVAL_MS = 500;

/** The outcome of replayed events, as far as it is known after a short while, or when somebody stops waiting. */
export async function waitForOutcome(
  replayed: readonly DecidableEvent[],
  isStopped: () => boolean,
): Promise<{ readonly text: string; readonly isGood: boolean }> {
  const reasons = new Map(replayed.map(({ eventId, reason }) => [eventId, reason]));
  let states: readonly (readonly [eventId: string, state: string])[] | null = null;
  for (let poll = 0; poll < MAX_POLLS && !isStopped(); poll++) {
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    const { answer, failure } = await post({ action: "outcomes", eventIds: [...reasons.keys()] });
    if (failure !== null || !answer.states) continue;
    states = Object.entries(answer.states);
    if (states.every(([, state]) => state !== "waiting" && state !== "running")) break;
  }
  if (states === null) return { text: ": their outcome is not known", isGood: false };
  const counts = new Map<string, number>();
  for (const [eventId, state] of states) {
    const word = wordOf(state, reasons.get(eventId));
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const text = `: ${[...counts].map(([word, count]) => `${count} ${word}`).join(", ")}`;
  return {
    text,
    isGood: !counts.has("held again") && !counts.has("held") && !counts.has("not finished yet"),
  };
}

function wordOf(state: string, reason = ""): string {
  switch (state) {
    case "held":
      return ENDED_REASONS.has(reason) ? "held" : "held again";
    case "done":
      return REREAD_REASONS.has(reason) ? "read again and settled" : "finished";
    case "stale":
      return "overtaken, without a run";
    case "discarded":
      return "discarded by somebody else";
    default:
      return "not finished yet";
  }
}
