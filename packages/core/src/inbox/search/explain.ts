import { HELD_ADVICE, HELD_BECAUSE, type HeldReason } from "../../protocol/held-reasons.ts";
import { type HandlerState, ON_HELD_PREFIX } from "../record/handler-state.ts";
import type { HistoryEntry } from "../record/record.ts";
import type { StoredEvent } from "../record/stored-event.ts";

/** Something that happened to an event. */
export interface ExplainedMoment {
  /** The store's clock, in milliseconds since the epoch. */
  readonly at: number;
  readonly text: string;
}

/**
 * The record of an event in plain sentences. The sentences of `past` may contain values of the delivery, errors of handlers
 * and notes of people. The other sentences have no value of a delivery, and no text from outside except the names of handlers.
 */
export interface Explanation {
  /** The arrival, the reading and everything that has happened since, in the order of time. */
  readonly past: readonly ExplainedMoment[];
  /** The state of the event, and its reason. */
  readonly now: readonly string[];
  /** The state of each handler that was called, or will be called again. */
  readonly handlers: readonly string[];
  /** What happens next if nobody does anything. */
  readonly next: readonly string[];
  /** The actions that a person can take. */
  readonly advice: readonly string[];
  /** The decisions that can be made about it now. */
  readonly decisions: readonly ("replay" | "discard" | "retry")[];
}

/** If an event has waited for its run for longer than this, probably no process runs events. */
const USUAL_WAIT_MS = 30_000;

/** Explains an event by its record alone. `now` is in milliseconds since the epoch. */
export function explain(event: StoredEvent, now: number): Explanation {
  const handlers = Object.entries(event.handlers).map((handler) => handlerText(handler, now));
  return { past: pastOf(event), handlers, ...EXPLAIN_BY_STATE[event.state](event, now) };
}

type PresentTexts = Omit<Explanation, "past" | "handlers">;

const EXPLAIN_BY_STATE: Readonly<
  Record<StoredEvent["state"], (event: StoredEvent, now: number) => PresentTexts>
> = {
  waiting: explainWaiting,
  retrying: explainRetrying,
  running: explainRunning,
  held: explainHeld,
  done: () => explainEnded("It is done: every handler that wanted it has finished."),
  stale: () =>
    explainEnded(
      "A later event had overtaken it, such as the final status of its transaction. So its handlers do not run.",
    ),
  discarded: () => explainEnded("A person has discarded it. Its handlers do not run."),
};

function explainWaiting(event: StoredEvent, now: number): PresentTexts {
  const since = event.history.findLast(({ what }) => what.startsWith("replay "))?.at ?? event.acceptedAt;
  const waitedMs = now - since;
  const isBehind = event.others.some(({ state }) => state === "running");
  const isLate = !isBehind && waitedMs > USUAL_WAIT_MS;
  return {
    now: [
      event.replays === 0
        ? "It waits for its first run."
        : `It waits for its run after replay ${event.replays}.`,
      ...(isBehind
        ? ["Another event of its transaction is running, and only one of them runs at a time."]
        : []),
      ...(isLate ? [`It has waited for ${spanOf(waitedMs)}, which is unusual.`] : []),
    ],
    next: ["A process that runs events takes it as soon as it has a free place, and calls its handlers."],
    advice: isLate
      ? [
          "See whether a process of your application runs events of this inbox (receiver.start), whether it is ready, and whether more events wait than it has places for.",
        ]
      : ["Nothing has to be done."],
    decisions: [],
  };
}

function explainRetrying({ handlers }: StoredEvent, now: number): PresentTexts {
  const due = Object.values(handlers)
    .filter(({ state }) => state === "failed")
    .map(({ dueAt }) => dueAt);
  const nextAt = due.length === 0 ? now : Math.min(...due);
  return {
    now: ["It waits for handlers that have not finished."],
    next: [
      nextAt > now
        ? `A process that runs events tries again ${timeText(nextAt, now)}, or a little later.`
        : "It is due: a process that runs events tries again as soon as it has capacity.",
      "If a handler fails at its last attempt, the event is held for a person.",
    ],
    advice: [
      "Fix what the handlers report.",
      ...(nextAt > now
        ? [
            "If that is done, bring the next attempt forward with payhooks events retry, instead of waiting for it.",
          ]
        : []),
    ],
    decisions: nextAt > now ? ["retry"] : [],
  };
}

function explainRunning(): PresentTexts {
  return {
    now: ["A process is running it."],
    next: [
      "When all its handlers have finished, it is done. If one fails, it is tried again later.",
      "If the process dies, another process takes the event as soon as its lease is over.",
    ],
    advice: ["Nothing has to be done."],
    decisions: [],
  };
}

function explainHeld({ reason, heldAt, handlers, others }: StoredEvent, now: number): PresentTexts {
  const because = reason === null ? "" : ` ${HELD_BECAUSE[reason]}`;
  const since = heldAt === null ? "" : ` since ${timeText(heldAt, now)}`;
  const isTriedAgain = ([name, { state }]: readonly [string, HandlerState]): boolean =>
    name.startsWith(ON_HELD_PREFIX) && (state === "failed" || state === "started");
  return {
    now: [`It is held for a person${since}.${because}`],
    next: [
      "Its handlers do not run until somebody decides. Copies of it are acknowledged, and change nothing.",
      ...(Object.entries(handlers).some(isTriedAgain) ? ["Its onHeld handlers are tried again."] : []),
    ],
    advice: [
      ...(others.some(({ runsToo }) => runsToo)
        ? ["Another event of its transaction has run, or will. A replay runs a second one."]
        : []),
      ...(reason === null ? [] : [HELD_ADVICE[reason]]),
    ],
    decisions: ["replay", "discard"],
  };
}

function explainEnded(now: string): PresentTexts {
  return {
    now: [now],
    next: [
      "Copies of it are acknowledged, and do not run. Its record is deleted some time after its window.",
    ],
    advice: ["Nothing has to be done."],
    decisions: [],
  };
}

function handlerText(
  [name, { state, attempts, dueAt }]: readonly [string, HandlerState],
  now: number,
): string {
  const isOnHeld = name.startsWith(ON_HELD_PREFIX);
  const who = `${isOnHeld ? "The onHeld handler" : "The handler"} ${isOnHeld ? name.slice(ON_HELD_PREFIX.length) : name}`;
  const tries = `${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
  switch (state) {
    case "done":
      return `${who} has finished, and is not called again.`;
    case "started":
      return `${who} was called (attempt ${attempts}), and has not answered yet.`;
    case "given-up":
      return `${who} is not tried again by itself, after ${tries}.`;
    case "failed":
      return attempts === 0 && dueAt === 0
        ? `${who} has not been called yet.`
        : `${who} has failed: ${tries} so far. It is due ${dueAt > now ? timeText(dueAt, now) : "now"}.`;
  }
}

function pastOf(event: StoredEvent): readonly ExplainedMoment[] {
  const { acceptedAt, copies, lastDeliveryAt, history } = event;
  const first = { at: acceptedAt, text: `${arrivalOf(event)} ${readingOf(event)}` };
  const changes = history
    .filter(({ what }) => what !== "accepted")
    .map((entry) => ({ at: entry.at, text: entryText(entry) }));
  const copyText = `Its last copy arrived; ${copies} ${copies === 1 ? "was" : "were"} counted.`;
  const copy = copies === 0 ? [] : [{ at: lastDeliveryAt, text: copyText }];
  return [first, ...[...changes, ...copy].sort((a, b) => a.at - b.at)];
}

const ARRIVAL_TEXTS = {
  callback: "A callback arrived",
  webhook: "A webhook arrived",
  lookup: "It was looked up at the service",
} as const;

function arrivalOf({ delivery, flow }: StoredEvent): string {
  if (delivery === null) return `It arrived in the flow ${flow}, and was accepted.`;
  const { arrivedBy, keyId } = delivery;
  const signatureText =
    keyId === null ? "without a signature" : `verified with the key ${keyId.slice(0, 16)}`;
  return `${ARRIVAL_TEXTS[arrivedBy]} in the flow ${flow}${arrivedBy === "lookup" ? "" : `, ${signatureText}`}, and was accepted.`;
}

function readingOf({ event, status, amount, id, referenceId, tenant }: StoredEvent): string {
  if (event === "") return "No event could be read from it with certainty.";
  const facts = [
    [event, status].filter(Boolean).join(" "),
    amount === null ? "" : `amount ${amount}`,
    referenceId === null ? "" : `reference ${referenceId}`,
    `id ${id}`,
    tenant === "" ? "" : `tenant ${tenant}`,
  ];
  return `It was read as ${facts.filter(Boolean).join(", ")}.`;
}

/** A line of a history as a sentence. A line of another version stays as it is. */
function entryText({ what, handler, attempt, error, by, note }: HistoryEntry): string {
  const errorText = error === undefined ? "" : ` It threw: ${error}`;
  const noteText = note === undefined ? "" : ` Note: ${note}`;
  const [word = "", rest = ""] = what.split(": ");
  const who = by ?? "Somebody";
  if (word === "held" && Object.hasOwn(HELD_BECAUSE, rest)) {
    return `It was put on hold as ${rest}: ${HELD_BECAUSE[rest as HeldReason]}`;
  }
  if (word === "failed") return `The handler ${handler} failed at attempt ${attempt}.${errorText}`;
  if (word === "given up")
    return `The handler ${handler} was given up as ${rest}, at attempt ${attempt}.${errorText}`;
  if (word.startsWith("replay ")) return `${who} replayed it.${noteText}`;
  switch (word) {
    case "attempt brought forward":
      return `${who} brought its next attempt forward.${noteText}`;
    case "lapsed":
      return "The process that ran it died, or was silent for too long, so it went to another process.";
    case "discarded":
      return `${who} discarded it.${noteText}`;
    case "done":
      return "All its handlers had finished.";
    case "stale":
      return "A later event overtook it.";
    default:
      return `${what}${by === undefined ? "" : ` by ${by}`}.${noteText}`;
  }
}

function timeText(at: number, now: number): string {
  const away = at > now ? `in ${spanOf(at - now)}` : `${spanOf(now - at)} ago`;
  return `${at > now ? "at " : ""}${new Date(at).toISOString()}, ${away}`;
}

const TIME_UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
] as const;

function spanOf(ms: number): string {
  const [length, unit] = TIME_UNITS.find(([length]) => ms >= length) ?? [1_000, "s"];
  return `${Math.floor(ms / length)} ${unit}`;
}
