import type { BulkReason, OtherEvent, StoredEvent, UnreadableEvents } from "@payhooks/core";
import { HELD_BECAUSE, needsInvestigation } from "@payhooks/core/events";
import { type Html, html } from "@payhooks/pages";
import type { DecisionKind } from "../answers.ts";
import { isReason } from "../query.ts";
import type { Redaction, Redactor } from "../redaction/redaction.ts";
import { nameOf } from "./labels.ts";
import { count, moment, redactedText, untrustedText } from "./text.ts";
import { unreadableInWords } from "./unreadable.ts";

/** The reason by which a decision names an event: why it is held, how it has ended, or that it waits for another attempt. */
type PlannedReason = BulkReason | "retrying";

/** How many events a decision leaves alone, by why. */
export type LeftAloneCounts = Readonly<Record<string, number>>;

/** An event before a decision about it. */
export type PlannedEvent = Omit<StoredEvent, "reason" | "revision"> & {
  readonly reason: PlannedReason;
  /** Empty for an event that waits for another attempt. */
  readonly revision: string;
  /** The SUCCESS events of other transactions with the same reference; null if none of them is known. */
  readonly sameReference: readonly StoredEvent[] | null;
  /** Of an event that has ended: the handlers that this process has for it now. */
  readonly runs?: readonly string[];
};

/**
 * The events that a decision is about, by reason. Each reason has a box that includes its events. If there are several
 * events, the boxes of reasons that raise the question of what is true, and of discarded events, are empty: the user
 * has to tick them.
 */
export function plannedList(
  entries: readonly PlannedEvent[],
  leftAlone: LeftAloneCounts,
  unreadable: UnreadableEvents | null,
  decision: DecisionKind,
  redactor: Redactor,
): Html {
  const groups = new Map<PlannedReason, PlannedEvent[]>();
  for (const entry of entries) groups.set(entry.reason, [...(groups.get(entry.reason) ?? []), entry]);
  return html`${handlersToRun(entries)}${leftAloneText(leftAlone)}${unreadableText(unreadable)}${[
    ...groups,
  ].map(([reason, group]) => {
    const isTicked = entries.length === 1 || !(reason === "discarded" || isQuestion(reason));
    return html`<fieldset class="planned" data-reason="${reason}">
  <legend><label class="check"><input type="checkbox" name="reason" value="${reason}" data-count="${group.length}" ${isTicked && html`checked`}>${reason} <span class="count">${count(group.length)}</span></label></legend>
  <p class="hint">${becauseOf(reason)}</p>
  <ul>${group.map((entry) => row(entry, entries, decision, redactor))}</ul>
</fieldset>`;
  })}`;
}

/** True if a person has to find out what is true before the event runs. */
function isQuestion(reason: string): boolean {
  return isReason(reason) && needsInvestigation(reason);
}

const REASON_TEXTS: Readonly<Partial<Record<PlannedReason, string>>> = {
  retrying: "An attempt has failed, and the next one is due later.",
  done: "It has ended, and runs again.",
  discarded: "Somebody has discarded it. It runs all the same.",
};

function becauseOf(reason: PlannedReason): string {
  return isReason(reason) ? HELD_BECAUSE[reason] : (REASON_TEXTS[reason] ?? "");
}

/** The handlers of events that have ended, with a box for each, and how many events each runs for. */
function handlersToRun(entries: readonly PlannedEvent[]): Html {
  const counts = new Map<string, number>();
  for (const name of entries.flatMap(({ runs }) => runs ?? [])) counts.set(name, (counts.get(name) ?? 0) + 1);
  if (counts.size === 0) return html``;
  return html`<fieldset class="planned"><legend>Handlers that run again</legend>
  ${[...counts].map(([name, events]) => html`<label class="check"><input type="checkbox" name="handler" value="${name}" checked>${untrustedText(name)} <span class="count">${count(events)}</span></label>`)}
  <p class="hint">Effects that are there are skipped, because each handler gets the same effectId as before.</p>
  <label class="check"><input type="checkbox" name="repeatEffects">Let the effects of the ticked handlers happen once more</label>
</fieldset>`;
}

const LEFT_ALONE_TEXTS: Readonly<Record<string, string>> = {
  "not-kept": "whose signed text was not kept (option keep)",
  superseded: "that a later event has replaced",
};

function leftAloneText(leftAlone: LeftAloneCounts): Html {
  const parts = Object.entries(leftAlone).map(
    ([why, events]) => `${count(events)} ${LEFT_ALONE_TEXTS[why] ?? why}`,
  );
  return html`${parts.length > 0 && html`<p class="hint">Left alone: ${parts.join(", ")}.</p>`}`;
}

function unreadableText(unreadable: UnreadableEvents | null): Html {
  return html`${unreadable !== null && html`<p class="problem">${unreadableInWords(unreadable)}</p>`}`;
}

function row(
  entry: PlannedEvent,
  entries: readonly PlannedEvent[],
  decision: DecisionKind,
  redactor: Redactor,
): Html {
  const { detail, acceptedAt } = entry;
  const redaction = redactor.redact(entry);
  const tenant = redaction.redactLabel("tenant", entry.tenant);
  const first = decision === "replay" ? firstOfTransaction(entry, entries) : undefined;
  const shownOthers = entry.others.filter(
    (other) => isQuestion(entry.reason) || other.runsToo || other.eventId === first?.eventId,
  );
  return html`<li><span class="line"><span class="name">${untrustedText(nameOf(entry, redaction))}</span><span class="end sub">${moment(acceptedAt)}</span></span>
  <span class="sub">${factsOf(entry, redaction)}${tenant !== "" && html` · ${untrustedText(tenant)}`}</span>
  ${detail !== null && html`<span class="problem">${redactedText(redaction, detail)}</span>`}
  ${shownOthers.map((other) => html`<span class="sub">The same transaction: ${factsOf(other, redaction)} · ${stateOf(other)}, ${moment(other.acceptedAt)}</span>`)}
  ${sameReference(entry.sameReference, redactor)}
  ${decision === "replay" && runs(entry, first)}</li>`;
}

/** The other transactions that have succeeded with the same reference. */
export function sameReference(otherEvents: readonly StoredEvent[] | null, redactor: Redactor): Html {
  if (otherEvents === null) {
    return html`<span class="sub">The other transaction is not shown: the inbox does not know which one has this reference now.</span>`;
  }
  return html`${otherEvents.map(
    (other) =>
      html`<span class="sub">Another transaction with this reference: ${untrustedText(redactor.redact(other).redactLabel("id", other.id))} · ${factsOf(other, redactor.redact(other))} · ${stateOf(other)}, ${moment(other.acceptedAt)}</span>`,
  )}`;
}

/** The earlier entry after whose replay this one is left alone: they are outcomes of one transaction. */
function firstOfTransaction(entry: PlannedEvent, entries: readonly PlannedEvent[]): PlannedEvent | undefined {
  const otherIds = new Set(entry.others.map(({ eventId }) => eventId));
  return entries
    .slice(0, entries.indexOf(entry))
    .find(
      ({ eventId, status }) =>
        otherIds.has(eventId) && (status === "PENDING") === (entry.status === "PENDING"),
    );
}

function runs(entry: PlannedEvent, first: PlannedEvent | undefined): Html {
  return html`${entry.others.some(({ runsToo }) => runsToo) && html`<strong class="problem">A second event of this transaction will run as well.</strong>`}
  ${entry.reason === "reference-reused" && html`<strong class="problem">A second payment with this reference will run.</strong>`}
  ${first !== undefined && html`<strong class="problem">Is left alone, once the other event of this transaction above is replayed.</strong>`}
  <span class="sub">${handlersOf(entry)}</span>`;
}

/** The handlers that a replay runs, as far as the inbox or this process knows them. */
function handlersOf({ event, handlers: handlerStates, runs }: PlannedEvent): Html {
  if (runs !== undefined) {
    return runs.length > 0
      ? html`Runs ${untrustedText(runs.join(", "))} again.`
      : html`Runs every handler again that your application has for it. This process has none.`;
  }
  if (event === "") return html`It is read again, as if it had just arrived, and may be held again.`;
  const names = (isDone: boolean): readonly string[] =>
    Object.entries(handlerStates)
      .filter(([, { state }]) => (state === "done") === isDone)
      .map(([name]) => name);
  const [again, skipped] = [names(false), names(true)];
  return html`Runs every handler that has not finished${again.length > 0 && html`, ${untrustedText(again.join(", "))} among them`}.${skipped.length > 0 && html` Finished: ${untrustedText(skipped.join(", "))}.`}`;
}

/** The name, the status and the amount of an event. */
export function factsOf(event: Pick<StoredEvent, "event" | "status" | "amount">, redaction: Redaction): Html {
  const name = redaction.redactLabel("event", event.event) || "unknown event";
  const status = redaction.redactLabel("status", event.status) ?? "";
  const amount = redaction.redactLabel("amount", event.amount);
  return html`${untrustedText(name)}${status !== "" && html` · ${untrustedText(status)}`}${amount !== null && html` · <b class="amount">${untrustedText(amount)}</b>`}`;
}

const STATE_TEXTS: Readonly<Record<Exclude<OtherEvent["state"], "held">, string>> = {
  waiting: "waits to run",
  retrying: "waits for another attempt",
  running: "runs now",
  done: "done",
  stale: "overtaken, has not run",
  discarded: "discarded",
};

/** The state of another event, in words. */
export function stateOf({ state, reason }: Pick<OtherEvent, "state" | "reason">): string {
  return state === "held" ? `held: ${reason ?? "unknown"}` : STATE_TEXTS[state];
}
