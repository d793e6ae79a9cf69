import type { HeldReason, Inbox, StoredEvent } from "@payhooks/core";
import { needsInvestigation, successesOfReference } from "@payhooks/core/events";
import { escapeForTerminal } from "../command-line/printer.ts";
import type { Terminal } from "../command-line/terminal.ts";
import { amountIn, describeEvent, eventAsJson, isoTime, stateIn } from "./event.ts";

/** The decisions that are possible about a held event. */
export type DecisionKind = "replay" | "discard";

/** A held event that a decision is about, as it was when it was read. */
export type PlanEntry = StoredEvent & {
  readonly reason: HeldReason;
  readonly revision: string;
  /** The SUCCESS events of other transactions with the same reference; null if none of them is known. */
  readonly sameReference: readonly StoredEvent[] | null;
};

/** The event as an entry, without its body: thousands of them would fill the memory. Null if it is not held. */
export async function entryOf(inbox: Inbox, event: StoredEvent | null): Promise<PlanEntry | null> {
  if (event === null || event.reason === null || event.revision === null) return null;
  const { reason, revision } = event;
  return {
    ...event,
    delivery: null,
    reason,
    revision,
    sameReference: await successesOfReference(inbox.events, event),
  };
}

/** Everything that one command decides about. */
export interface Plan {
  readonly decision: DecisionKind;
  /** The handlers that a replay is restricted to; null: those that have not finished. */
  readonly only: readonly string[] | null;
  readonly entries: readonly PlanEntry[];
}

/** The earlier entry of the plan after whose replay this one is skipped: they are outcomes of one transaction. */
function firstOfTransaction(entry: PlanEntry, { decision, entries }: Plan): PlanEntry | undefined {
  if (decision === "discard") return undefined;
  const earlier = entries.slice(0, entries.indexOf(entry));
  const others = new Set(entry.others.map(({ eventId }) => eventId));
  return earlier.find(
    ({ eventId, status }) => others.has(eventId) && (status === "PENDING") === (entry.status === "PENDING"),
  );
}

/** How many entries there are for each reason, such as `2 exhausted, 1 mismatch`. */
export function countsOf(entries: readonly PlanEntry[]): string {
  const counts = new Map<string, number>();
  for (const { reason } of entries) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, count]) => `${count} ${reason}`).join(", ");
}

/** One entry of a plan as JSON: the event, and what would become of it. */
export function planAsJson(entry: PlanEntry, plan: Plan): Readonly<Record<string, unknown>> {
  const { sameReference, ...event } = entry;
  return {
    ...eventAsJson(event),
    outcome: plan.decision === "replay" ? "would-be-queued" : "would-be-discarded",
    sameReference: sameReference?.map((other) => eventAsJson(other)) ?? null,
    skippedAfter: firstOfTransaction(entry, plan)?.eventId ?? null,
  };
}

/**
 * Prints one entry of a plan: the event's fields, the events that it contradicts, and the handlers that a replay
 * would run.
 */
export function printPlanEntry(entry: PlanEntry, plan: Plan, now: number, { line, paint }: Terminal): void {
  const { eventId, reason, detail, others, acceptedAt } = entry;
  const age = `${isoTime(acceptedAt)}, ${ageOf(now - acceptedAt)} ago`;
  line(`${eventId}  ${paint("yellow", reason)}  ${escapeForTerminal(describeEvent(entry))}  ${age}`);
  if (detail !== null) line(`  ${escapeForTerminal(detail)}`);
  const first = firstOfTransaction(entry, plan);
  for (const other of others) {
    if (!needsInvestigation(reason) && !other.runsToo && other.eventId !== first?.eventId) continue;
    const description = [other.event || "?", other.status, amountIn(other)].filter(Boolean).join(" ");
    line(
      `  same transaction: ${escapeForTerminal(description)}, ${stateIn(other)}, ${isoTime(other.acceptedAt)}`,
    );
  }
  if (entry.sameReference === null)
    line("  the other transaction is not shown: the inbox does not know which one has this reference now");
  for (const other of entry.sameReference ?? []) {
    const description = [other.event, other.status, amountIn(other), other.id].filter(Boolean).join(" ");
    line(
      `  same reference: ${escapeForTerminal(description)}, ${stateIn(other)}, ${isoTime(other.acceptedAt)}`,
    );
  }
  if (plan.decision === "discard") return;
  if (others.some(({ runsToo }) => runsToo)) {
    line(`  ${paint("red", "a second event of this transaction will run as well")}`);
  }
  if (reason === "reference-reused") {
    line(`  ${paint("red", "a second payment with this reference will run")}`);
  }
  if (first !== undefined) {
    line(`  ${paint("red", "is skipped, once the other event of this transaction above is replayed")}`);
  }
  line(`  ${runsText(entry, plan)}`);
}

/** The handlers that a replay runs, as far as the inbox knows. Their names are in the application. */
function runsText({ event, handlers }: PlanEntry, { only }: Plan): string {
  if (event === "") return "it is read again, as if it had just arrived, and may be held again";
  if (only !== null) return `runs only: ${escapeForTerminal(only.join(", "))}`;
  const names = (isDone: boolean): string =>
    escapeForTerminal(
      Object.entries(handlers)
        .filter(([, { state }]) => (state === "done") === isDone)
        .map(([name]) => name)
        .join(", "),
    );
  const [again, skipped] = [names(false), names(true)];
  const againNote = again === "" ? "" : `, ${again} among them`;
  return `runs every handler of ${escapeForTerminal(event)} that has not finished${againNote}${skipped === "" ? "" : `; finished: ${skipped}`}`;
}

/** A time span in its largest unit. A clock that is behind the store's gives none. */
function ageOf(ms: number): string {
  const units = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
  ] as const;
  for (const [length, unit] of units) if (ms >= length) return `${Math.floor(ms / length)} ${unit}`;
  return `${Math.max(0, Math.floor(ms / 1_000))} s`;
}
