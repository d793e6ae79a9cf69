import type { StoredEvent } from "@payhooks/core";
import { explain, explainOrder, type SubjectOrder } from "@payhooks/core/events";
import { type Html, html, pill, type Tone } from "@payhooks/pages";
import type { ConsoleRight } from "../options.ts";
import { addressOf, type ConsoleQuery } from "../query.ts";
import type { Redaction, Redactor } from "../redaction/redaction.ts";
import { isCertain, nameOf } from "./labels.ts";
import { decidableStateOf, decideButtons, decisionsOn, statePill } from "./list.ts";
import { factsOf, stateOf as otherStateOf, sameReference } from "./planned-events.ts";
import { count, moment, redactedText, untrustedText } from "./text.ts";

/** The contents of the page of one event. */
export interface EventView {
  readonly query: ConsoleQuery;
  readonly event: StoredEvent;
  /** The SUCCESS events of other transactions with the same reference; null if the inbox cannot search for them. */
  readonly successes: readonly StoredEvent[] | null;
  /** The events of the same subject; null if it has none, or if the inbox did not answer. */
  readonly order: SubjectOrder | null;
  readonly redactor: Redactor;
  readonly rights: readonly ConsoleRight[];
}

/** The cards about one event: its facts, its history, its body and its handlers. */
export function eventCards(view: EventView): Html {
  const { event, query, redactor, rights } = view;
  const redaction = redactor.redact(event);
  const isHeld = event.state === "held";
  const decisions = decisionsOn(decidableStateOf(event), rights);
  return html`<section class="card" aria-labelledby="event-title">
  <header><a class="back" id="back" href="${addressOf(query, { eventId: null })}">← All events</a><h2 id="event-title">${untrustedText(nameOf(event, redaction))}</h2><span class="end">${statePill(event)}</span></header>
  <div class="inner">
    ${explanation(event, redaction)}
    ${decisions.length > 0 && html`<div class="actions" role="group" aria-label="Decide about this event">${decideButtons([event.eventId], decisions)}</div>`}
    ${isHeld && sameReference(view.successes, redactor)}
    ${facts(event, redaction)}
  </div>
</section>
${otherEventsCard(view, redaction)}
${orderOfSubject(view, redaction)}
<div class="pair-of-cards">
  <section class="card" aria-labelledby="timeline-title"><header><h2 id="timeline-title">What happened</h2></header><div class="inner">${timeline(event, redaction)}</div></section>
  <section class="card" aria-labelledby="body-title"><header><h2 id="body-title">What its handlers get</h2></header><div class="inner">${body(event, redaction)}</div></section>
</div>
${handlers(event, redaction)}`;
}

/** The card for an event without a record, or, if the inbox did not answer, without an answer. */
export function missingEvent(query: ConsoleQuery, isKnown: boolean): Html {
  const [title, text] = isKnown
    ? [
        "Event not found",
        "There is no record of this event. The record of a finished event is deleted some time after its window.",
      ]
    : ["Event not read", "The inbox did not answer, so nobody knows whether it has this event."];
  return html`<section class="card" aria-labelledby="event-title"><header><a class="back" href="${addressOf(query, { eventId: null })}">← All events</a><h2 id="event-title">${title}</h2></header>
<p class="empty">${text}</p></section>`;
}

/** Shows the state of the event and why, what happens next, and what a person can do. */
function explanation(event: StoredEvent, redaction: Redaction): Html {
  const { now, next, advice } = explain(event, Date.now());
  const sentences = (all: readonly string[]): Html =>
    html`${all.map((text) => html`${untrustedText(text)} `)}`;
  const isHeld = event.state === "held";
  return html`<p ${isHeld && html`class="reason"`}>${sentences(now)}${event.detail !== null && html` <span class="detail">${redactedText(redaction, event.detail)}</span>`}</p>
    <p class="hint">${sentences(next)}</p>
    <p>${sentences(advice)}</p>`;
}

/** The other events of the same transaction. */
function otherEventsCard({ event, query }: EventView, redaction: Redaction): Html {
  if (event.others.length === 0) return html``;
  return html`<section class="card" aria-labelledby="others-title"><header><h2 id="others-title">The same ${event.flow === "payments" ? "transaction" : "webhook"}</h2></header>
<ul class="list">${event.others.map(
    (other) =>
      html`<li class="row"><a class="event" href="${addressOf(query, { eventId: other.eventId })}"><span class="line"><span>${factsOf(other, redaction)}</span><span class="end sub">${moment(other.acceptedAt)}</span></span><span class="sub">${otherStateOf(other)}</span></a></li>`,
  )}</ul></section>`;
}

/** The events of the same subject in the order in which they were signed, with what each waits for and which has overtaken it. */
function orderOfSubject({ event, order, query }: EventView, redaction: Redaction): Html {
  if (order === null) return html``;
  const { events, complete } = order;
  return html`<section class="card" aria-labelledby="order-title"><header><h2 id="order-title">The same subject</h2><span class="end sub">by signed time</span></header>
<ol class="list order">${explainOrder(order).map((other) => {
    const facts = html`<span class="line"><span>${factsOf(other, redaction)}</span><span class="end">${statePill(other)}</span></span><span class="sub">signed ${moment(other.signedAt)}</span><span class="sub">${untrustedText(other.text)}</span>`;
    return other.eventId === event.eventId
      ? html`<li class="row this" aria-current="true"><div class="event">${facts}</div></li>`
      : html`<li class="row"><a class="event" href="${addressOf(query, { eventId: other.eventId })}">${facts}</a></li>`;
  })}</ol>
${events.length === 1 && html`<p class="hint inner">No other event of it is known.</p>`}${!complete && html`<p class="hint inner">There may be earlier ones that are not listed here.</p>`}</section>`;
}

/** The name of an event's id. A source calls it as it likes. */
const ID_NAMES: Readonly<Record<string, string>> = { payments: "payTxnId", connect: "idempotency_key" };

function facts(event: StoredEvent, redaction: Redaction): Html {
  const { flow, eventId, replays, copies, acceptedAt, lastDeliveryAt } = event;
  const name = redaction.redactLabel("event", event.event);
  const status = redaction.redactLabel("status", event.status) ?? "";
  const reference = redaction.redactLabel("referenceId", event.referenceId);
  const amount = redaction.redactLabel("amount", event.amount);
  const tenant = redaction.redactLabel("tenant", event.tenant);
  return html`<dl class="facts">
  ${reference !== null && html`<dt>reference</dt><dd class="mono">${untrustedText(reference)}</dd>`}
  ${
    isCertain(event)
      ? html`<dt>${ID_NAMES[flow] ?? `id at ${flow}`}</dt><dd class="mono">${untrustedText(redaction.redactLabel("id", event.id))}</dd>`
      : html`<dt>hash of what was signed</dt><dd class="mono">${untrustedText(event.id)}</dd>`
  }
  <dt>event</dt><dd>${name === "" ? "unknown" : untrustedText(name)}${status !== "" && html` · ${untrustedText(status)}`}</dd>
  ${amount !== null && html`<dt>amount</dt><dd>${untrustedText(amount)}</dd>`}
  <dt>flow</dt><dd>${flow}</dd>
  ${tenant !== "" && html`<dt>tenant</dt><dd>${untrustedText(tenant)}</dd>`}
  <dt>first delivery</dt><dd>${moment(acceptedAt)}</dd>
  ${copies > 0 && html`<dt>last delivery</dt><dd>${moment(lastDeliveryAt)}, ${count(copies)} ${copies === 1 ? "copy" : "copies"} since the first</dd>`}
  ${replays > 0 && html`<dt>replays</dt><dd>${count(replays)}</dd>`}
  <dt>event id</dt><dd class="mono">${eventId}</dd>
</dl>`;
}

type HistoryEntry = StoredEvent["history"][number];

/** The event's history, in the order of time. */
function timeline(event: StoredEvent, redaction: Redaction): Html {
  const { history, acceptedAt, copies, lastDeliveryAt, state } = event;
  const has = (what: string): boolean => history.some((entry) => entry.what === what);
  const events: { readonly at: number; readonly tone: string; readonly content: Html }[] = [
    // An event that was done at its first attempt has no history.
    ...(has("accepted") ? [] : [{ at: acceptedAt, tone: "good", content: html`<b>accepted</b>` }]),
    ...history.map((entry) => ({ at: entry.at, tone: toneOf(entry), content: entryText(entry, redaction) })),
    ...(copies > 0
      ? [{ at: lastDeliveryAt, tone: "", content: html`<b>last copy</b> of ${count(copies)} that arrived` }]
      : []),
  ];
  const next = nextAttemptAt(event);
  return html`<ol class="timeline">${events
    .toSorted((a, b) => a.at - b.at)
    .map(
      ({ at, tone, content }) =>
        html`<li class="${tone}">${moment(at)}<span class="what">${content}</span></li>`,
    )}${
    next !== null &&
    html`<li class="coming">${moment(next)}<span class="what"><b>next attempt</b></span></li>`
  }${
    state === "done" &&
    !has("done") &&
    html`<li class="good"><span class="when">then</span><span class="what"><b>done</b></span></li>`
  }</ol>`;
}

function toneOf({ what, by }: HistoryEntry): string {
  if (by !== undefined) return "person";
  return what === "accepted" || what === "done" ? "good" : what === "stale" ? "" : "bad";
}

function entryText({ what, handler, attempt, error, by, note }: HistoryEntry, redaction: Redaction): Html {
  const words = what === "lapsed" ? "its process died, or was silent for too long" : what;
  return html`<b>${untrustedText(words)}</b>${handler !== undefined && html`: ${untrustedText(handler)}`}${attempt !== undefined && html`, attempt ${count(attempt)}`}${
    by !== undefined && html` by ${untrustedText(by)}`
  }${error !== undefined && html`<span class="said problem">${redactedText(redaction, error)}</span>`}${
    note !== undefined && html`<span class="said">“${redactedText(redaction, note)}”</span>`
  }`;
}

function nextAttemptAt({ state, handlers: handlerStates }: StoredEvent): number | null {
  const due = Object.values(handlerStates)
    .filter((handler) => handler.state === "failed" && handler.dueAt > 0)
    .map(({ dueAt }) => dueAt);
  return state === "retrying" && due.length > 0 ? Math.min(...due) : null;
}

function body({ delivery }: StoredEvent, redaction: Redaction): Html {
  if (delivery === null)
    return html`<p class="hint">The fields are kept while the event is unfinished or held.</p>`;
  const size = html`<p class="hint">${count(delivery.content.byteLength)} bytes, ${delivery.arrivedBy}, received ${moment(delivery.receivedAt)}${delivery.keyId !== null && html`, verified with key <span class="mono">${untrustedText(delivery.keyId.slice(0, 16))}</span>`}</p>`;
  if (redaction.contents === null)
    return html`<p class="hint">It is not shown: it has too many redacted values, or is nested too deeply, to look for all of them.</p>${size}`;
  const { fields, signed } = redaction.contents;
  return html`${fields.length === 0 && html`<p class="hint">Nothing of it can be read, so its handlers get nothing.</p>`}
<dl class="facts">${fields.map(
    ({ name, value }) =>
      html`<dt>${untrustedText(name)}</dt><dd class="mono">${value === null ? html`<span class="hint">not certain: what was signed can be read in several ways</span>` : untrustedText(value)}</dd>`,
  )}</dl>
${signed.length > 0 && html`<h3>What was signed</h3><pre class="body" tabindex="0" role="region" aria-label="What was signed">${signed.map(({ name, text }) => (name === null ? untrustedText(text) : html`${untrustedText(text.slice(0, text.indexOf("=") + 1))}<b>${untrustedText(text.slice(text.indexOf("=") + 1))}</b>`))}</pre>`}${size}`;
}

const HANDLER_TONES: Readonly<Record<string, Tone>> = {
  done: "good",
  failed: "wait",
  "given-up": "bad",
  started: "wait",
};

function handlers({ handlers: handlerStates }: StoredEvent, redaction: Redaction): Html {
  const entries = Object.entries(handlerStates);
  if (entries.length === 0) return html``;
  return html`<section class="card" aria-labelledby="handlers-title"><header><h2 id="handlers-title">Handlers</h2></header>
<ul class="list">${entries.map(
    ([name, { attempts, state, error, dueAt }]) => html`<li class="row"><div class="step">
  <span class="line"><span class="name">${untrustedText(name)}</span><span class="sub">${count(attempts)} ${attempts === 1 ? "attempt" : "attempts"}</span><span class="end">${pill(state, HANDLER_TONES[state] ?? "")}</span></span>
  ${error !== null && html`<p class="problem">${redactedText(redaction, error)}</p>`}
  ${state === "failed" && dueAt > 0 && html`<span class="sub">to be tried again at ${moment(dueAt)}</span>`}
</div></li>`,
  )}</ul></section>`;
}
