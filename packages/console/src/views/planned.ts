import type { AnyReceiver, HeldReason, OtherEvent, StoredEvent } from "@payhooks/core";
import { HELD_BECAUSE, isAboutTruth } from "@payhooks/core/inbox";
import { type Html, html } from "@payhooks/pages";
import type { Decision } from "../answers.ts";
import { redactedLabel, redactionOf } from "../redaction/redaction.ts";
import { nameOf } from "./labels.ts";
import { count, moment, said, shown } from "./shown.ts";

/** The reason by which a decision names an event: why it is held, or that it waits for another attempt. */
type PlannedReason = HeldReason | "retrying";

/** An event that somebody is about to decide about. */
export type Planned = Omit<StoredEvent, "reason" | "revision"> & {
  readonly reason: PlannedReason;
  /** Empty for an event that is not held. */
  readonly revision: string;
  /** The SUCCESS events of other transactions with the same reference; null if none of them is known. */
  readonly sameReference: readonly StoredEvent[] | null;
};

/**
 * The events that a decision is about, by reason. Each reason has a box that includes its events. Where there are several events, the
 * boxes of reasons that are questions of truth are empty: somebody has to tick them.
 */
export function planned(
  entries: readonly Planned[],
  decision: Decision,
  redact: readonly string[],
  contents: AnyReceiver["contents"],
): Html {
  const groups = new Map<PlannedReason, Planned[]>();
  for (const entry of entries) groups.set(entry.reason, [...(groups.get(entry.reason) ?? []), entry]);
  return html`${[...groups].map(([reason, group]) => {
    const isRetrying = reason === "retrying";
    const isTicked = isRetrying || entries.length === 1 || !isAboutTruth(reason);
    return html`<fieldset class="planned" data-reason="${reason}">
  <legend><label class="check"><input type="checkbox" name="reason" value="${reason}" data-count="${group.length}" ${isTicked && html`checked`}>${reason} <span class="count">${count(group.length)}</span></label></legend>
  <p class="hint">${isRetrying ? "An attempt has failed, and the next one is due later." : HELD_BECAUSE[reason]}</p>
  <ul>${group.map((entry) => row(entry, entries, decision, redact, contents))}</ul>
</fieldset>`;
  })}`;
}

function row(
  entry: Planned,
  entries: readonly Planned[],
  decision: Decision,
  redact: readonly string[],
  contents: AnyReceiver["contents"],
): Html {
  const { tenant, detail, acceptedAt, delivery } = entry;
  const redaction = redactionOf(redact, delivery === null ? null : contents(delivery));
  const first = decision === "replay" ? firstOfTransaction(entry, entries) : undefined;
  const others = entry.others.filter(
    (other) =>
      (entry.reason !== "retrying" && isAboutTruth(entry.reason)) ||
      other.runsToo ||
      other.eventId === first?.eventId,
  );
  return html`<li><span class="line"><span class="name">${shown(nameOf(entry, redact))}</span><span class="end sub">${moment(acceptedAt)}</span></span>
  <span class="sub">${factsOf(entry, redact)}${tenant !== "" && html` · ${shown(tenant)}`}</span>
  ${detail !== null && html`<span class="problem">${said(redaction, detail)}</span>`}
  ${others.map((other) => html`<span class="sub">The same transaction: ${factsOf(other, redact)} · ${stateOf(other)}, ${moment(other.acceptedAt)}</span>`)}
  ${sameReference(entry.sameReference, redact)}
  ${decision === "replay" && runs(entry, first)}</li>`;
}

/** The other transactions that have succeeded with the same reference. */
export function sameReference(lives: readonly StoredEvent[] | null, redact: readonly string[]): Html {
  if (lives === null) {
    return html`<span class="sub">The other transaction is not shown: the inbox does not know which one has this reference now.</span>`;
  }
  return html`${lives.map(
    (life) =>
      html`<span class="sub">Another transaction with this reference: ${shown(redactedLabel(redact, "id", life.id) ?? "")} · ${factsOf(life, redact)} · ${stateOf(life)}, ${moment(life.acceptedAt)}</span>`,
  )}`;
}

/** The earlier entry after whose replay this one is left alone: they are outcomes of one transaction. */
function firstOfTransaction(entry: Planned, entries: readonly Planned[]): Planned | undefined {
  const others = new Set(entry.others.map(({ eventId }) => eventId));
  return entries
    .slice(0, entries.indexOf(entry))
    .find(
      ({ eventId, status }) => others.has(eventId) && (status === "PENDING") === (entry.status === "PENDING"),
    );
}

function runs(entry: Planned, first: Planned | undefined): Html {
  return html`${entry.others.some(({ runsToo }) => runsToo) && html`<strong class="problem">A second event of this transaction will run as well.</strong>`}
  ${entry.reason === "reference-reused" && html`<strong class="problem">A second payment with this reference will run.</strong>`}
  ${first !== undefined && html`<strong class="problem">Is left alone, once the other event of this transaction above is replayed.</strong>`}
  <span class="sub">${handlersOf(entry)}</span>`;
}

/** The handlers that a replay runs, as far as the inbox knows them. */
function handlersOf({ event, handlers: steps }: Planned): Html {
  if (event === "") return html`It is read again, as if it had just arrived, and may be held again.`;
  const names = (isDone: boolean): readonly string[] =>
    Object.entries(steps)
      .filter(([, { state }]) => (state === "done") === isDone)
      .map(([name]) => name);
  const [again, skipped] = [names(false), names(true)];
  return html`Runs every handler that has not finished${again.length > 0 && html`, ${shown(again.join(", "))} among them`}.${skipped.length > 0 && html` Finished: ${shown(skipped.join(", "))}.`}`;
}

/** The name, the status and the amount of an event. */
export function factsOf(
  event: Pick<StoredEvent, "event" | "status" | "amount">,
  redact: readonly string[],
): Html {
  const name = redactedLabel(redact, "event", event.event) || "unknown event";
  const status = redactedLabel(redact, "status", event.status) ?? "";
  const amount = redactedLabel(redact, "amount", event.amount);
  return html`${shown(name)}${status !== "" && html` · ${shown(status)}`}${amount !== null && html` · <b class="amount">${shown(amount)}</b>`}`;
}

const STATES: Readonly<Record<Exclude<OtherEvent["state"], "held">, string>> = {
  waiting: "waits to run",
  retrying: "waits for another attempt",
  running: "runs now",
  done: "done",
  stale: "overtaken, has not run",
  discarded: "discarded",
};

/** The state of another event, in words. */
export function stateOf({ state, reason }: Pick<OtherEvent, "state" | "reason">): string {
  return state === "held" ? `held: ${reason ?? "unknown"}` : STATES[state];
}
