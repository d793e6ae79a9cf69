import type { StoredEvent } from "@payhooks/core";
import { eventRow } from "@payhooks/core/events";
import { type Html, html, pill, type Tone } from "@payhooks/pages";
import type { DecisionKind } from "../answers.ts";
import { rightFor } from "../guard.ts";
import type { ConsoleRight } from "../options.ts";
import { addressOf, type ConsoleQuery, isNarrowed, STATES } from "../query.ts";
import type { Redactor } from "../redaction/redaction.ts";
import { isCertain, nameOf } from "./labels.ts";
import { escapeInvisible, moment, untrustedText } from "./text.ts";

const DECISIONS_BY_STATE: Readonly<Record<DecidableState, readonly DecisionKind[]>> = {
  held: ["replay", "discard"],
  retrying: ["retry"],
  finished: ["replay"],
};

/** The lists whose events can be decided about. */
type DecidableState = "held" | "retrying" | "finished";

/** The list in which an event can be decided about. Null if it cannot: a finished event runs again only if it was kept. */
export function decidableStateOf({
  state,
  revision,
}: Pick<StoredEvent, "state" | "revision">): DecidableState | null {
  if (state === "held" || state === "retrying") return state;
  return (state === "done" || state === "discarded") && revision !== null ? "finished" : null;
}

const ALL_RIGHTS: readonly ConsoleRight[] = ["replay", "discard"];

/** The decisions that a user with these rights can make about the events of a list. */
export function decisionsOn(
  list: string | null,
  rights: readonly ConsoleRight[] = ALL_RIGHTS,
): readonly DecisionKind[] {
  const decisions =
    list !== null && Object.hasOwn(DECISIONS_BY_STATE, list)
      ? DECISIONS_BY_STATE[list as DecidableState]
      : [];
  return decisions.filter((decision) => rights.includes(rightFor(decision)));
}

/** The contents of a list of events. */
export interface ListView {
  readonly query: ConsoleQuery;
  /** Null if the inbox did not answer, or was not asked. */
  readonly events: readonly StoredEvent[] | null;
  /** The inbox was not asked, because the query cannot be right. */
  readonly isRefused: boolean;
  /** The events that were not looked through, or cannot be read, in words; null if there are none. */
  readonly unsearched: string | null;
  /** The cursor of the next page. */
  readonly next: string | null;
  readonly redactor: Redactor;
  readonly rights: readonly ConsoleRight[];
}

const STATE_TONES: Readonly<Record<StoredEvent["state"], Tone>> = {
  held: "bad",
  retrying: "wait",
  waiting: "",
  running: "wait",
  done: "good",
  stale: "",
  discarded: "",
};

/** A label with the reason why an event is held or, if it is not held, with its state. */
export function statePill({ state, reason }: Pick<StoredEvent, "state" | "reason">): Html {
  return reason === null ? pill(state, STATE_TONES[state]) : pill(reason, "bad", "held: ");
}

/** The form that searches and filters. Without scripts, it loads the page again. */
export function filterForm(query: ConsoleQuery, flows: readonly string[]): Html {
  const choice = (value: string, isSelected: boolean, label = value) =>
    html`<option value="${value}" ${isSelected && html`selected`}>${label}</option>`;
  const words = (name: "name" | "tenant" | "handler", label: string) =>
    html`<label>${label}<input name="${name}" value="${query[name]}" placeholder="any" autocomplete="off" spellcheck="false" maxlength="256"></label>`;
  const amount = (name: "min" | "max", label: string) =>
    html`<label>${label}<input name="${name}" value="${query[name]}" placeholder="any" inputmode="decimal" pattern="[0-9]+([.][0-9]+)?" title="Digits, such as 17 or 9999.50" autocomplete="off" maxlength="64"></label>`;
  return html`<form class="filter" id="filter" role="search" method="get">
  <label class="wide">Search<input type="search" id="search" name="search" value="${query.search}" placeholder="reference, transaction, webhook key or event id" autocomplete="off" spellcheck="false" maxlength="256"></label>
  <label>State<select name="state">${STATES.map((state) => choice(state, state === query.state))}</select></label>
  <button>Show</button>
  <details class="more" id="more-filters" ${isNarrowed({ ...query, reason: null }) && html`open`}><summary>More filters</summary><div class="fields">
  <label>Flow<select name="flow">${choice("", query.flow === null, "all")}${flows.map((flow) => choice(flow, flow === query.flow))}</select></label>
  ${words("name", "Event")}${words("tenant", "Tenant")}${words("handler", "Handler")}
  ${amount("min", "Amount from")}${amount("max", "Amount up to")}
  </div></details>
  <p class="hint" id="zones">Times: UTC</p>
</form>`;
}

/** One page of the list, or the results of a search. */
export function eventsCard(view: ListView): Html {
  const { query, next } = view;
  const events = view.events ?? [];
  const decisions = decisionsOn(decidedState(query), view.rights);
  const canSelect =
    decisions.length > 0 && events.some((event) => decidableStateOf(event) === decidedState(query));
  const title = query.search === null ? titleOf(query) : html`Found for ${untrustedText(query.search)}`;
  return html`<header><h2 id="events-title">${title}</h2><span class="end hint">newest first</span></header>
${canSelect && selection(query, decisions)}
<ul class="list events" aria-labelledby="events-title">${events.map((event) => row(event, view))}</ul>
${events.length === 0 && html`<p class="empty">${emptyText(view)}</p>`}
<nav class="pages" aria-label="Pages">${query.cursor !== null && html`<a class="button" href="${addressOf(query, { cursor: null })}">First page</a>`}${next !== null && html`<a class="button" id="next-page" href="${addressOf(query, { cursor: next })}">Next page</a>`}${query.search === null && events.length > 0 && downloads(query)}</nav>`;
}

/** Links to the whole list as a file. */
function downloads(query: ConsoleQuery): Html {
  const address = addressOf(query, { cursor: null });
  return html`<span class="end actions">Download all: <a href="${address}&amp;download=csv" download>CSV</a> <a href="${address}&amp;download=jsonl" download>JSON Lines</a></span>`;
}

/** The kind of events that a list is decided about. A search finds events in any state, and is about those that are held. */
function decidedState({ search, state }: ConsoleQuery): string {
  return search === null ? state : "held";
}

function titleOf({ state, reason }: ConsoleQuery): Html {
  return html`${state[0]?.toUpperCase()}${state.slice(1)}${state === "held" && reason !== null && `: ${reason}`}`;
}

function emptyText({ query, events, isRefused, next, unsearched }: ListView): string {
  const { search, state, cursor } = query;
  if (events === null && isRefused)
    return "Nothing was looked for: see above what is wrong with the address.";
  if (events === null) return "The inbox did not answer, so nobody knows which events it has.";
  if (search !== null) {
    return unsearched === null
      ? "Nothing is known under this reference or id."
      : `Nothing was found under this reference or id. ${unsearched}`;
  }
  if (unsearched !== null) return "Nothing that is here can be read: see above.";
  if (next !== null) return "Nothing on this page matches. There is more to look through on the next page.";
  if (cursor !== null) return "There is no more.";
  if (isNarrowed(query)) return `No event that matches is ${state}.`;
  return state === "held" ? "Nothing is held." : `No event is ${state}.`;
}

/** The bar that selects events and decides about them. */
function selection(query: ConsoleQuery, decisions: readonly DecisionKind[]): Html {
  return html`<div class="selection" id="selection" role="group" aria-label="Decide about several events">
  <label class="check"><input type="checkbox" id="select-page" data-select="page">All on this page</label>
  ${query.search === null && html`<label class="check"><input type="checkbox" id="select-all" data-select="all">All that match, on every page</label>`}
  <span class="end actions"><span class="count" id="selected">0 selected</span>${decideButtons([], decisions)}</span>
</div>`;
}

/** The buttons that open the dialog, for the events with these ids. Without ids, for the selected events. */
export function decideButtons(eventIds: readonly string[], decisions: readonly DecisionKind[]): Html {
  const button = (action: DecisionKind, label: string) =>
    decisions.includes(action) &&
    html`<button type="button" data-decide="${action}" data-events="${eventIds.join(" ")}" ${eventIds.length === 0 && html`disabled`}>${label}</button>`;
  return html`${button("retry", "Try now…")}${button("replay", "Replay…")}${button("discard", "Discard…")}`;
}

function row(summary: StoredEvent, { query, redactor, rights }: ListView): Html {
  const { eventId, flow, acceptedAt } = summary;
  const redaction = redactor.redact(summary);
  const id = redaction.redactLabel("id", summary.id);
  const reference = redaction.redactLabel("referenceId", summary.referenceId);
  const event = redaction.redactLabel("event", summary.event) || "unknown event";
  const status = redaction.redactLabel("status", summary.status) ?? "";
  const amount = redaction.redactLabel("amount", summary.amount);
  const tenant = redaction.redactLabel("tenant", summary.tenant);
  const name = nameOf(summary, redaction);
  const failure = failureOf(summary, redactor);
  const state = decidableStateOf(summary);
  const canPick = state === decidedState(query) && decisionsOn(state, rights).length > 0;
  return html`<li class="row">
  ${canPick ? html`<input type="checkbox" class="pick" id="pick-${eventId}" value="${eventId}" aria-label="Select ${escapeInvisible(name)}">` : html`<span class="pick"></span>`}
  <a class="event" id="open-${eventId}" href="${addressOf(query, { eventId })}">
    <span class="line"><span class="name">${untrustedText(name)}</span><span class="end">${statePill(summary)}</span></span>
    <span class="line"><span class="sub">${untrustedText(event)}${status !== "" && html` · ${untrustedText(status)}`}${amount !== null && html` · <b>${untrustedText(amount)}</b>`}${reference !== null && isCertain(summary) && html` · <span class="mono">${untrustedText(id)}</span>`}${tenant !== "" && html` · ${untrustedText(tenant)}`}${flow !== "payments" && ` · ${flow}`}</span><span class="end sub">${moment(acceptedAt)}</span></span>
    ${failure !== null && html`<span class="line"><span class="sub failure">${untrustedText(failure)}</span></span>`}
  </a>
</li>`;
}

const MAX_FAILURE_CHARS = 160;

/**
 * How often an event that has not ended was tried, and its last error. Null if nothing has failed, or the error may not be shown.
 */
function failureOf(event: StoredEvent, { withoutFields }: Redactor): string | null {
  if (event.state !== "held" && event.state !== "retrying") return null;
  const { attempts, lastError } = eventRow(event);
  const text = lastError === null ? null : withoutFields.redactText(lastError);
  const said = text?.replace(/\s+/g, " ").slice(0, MAX_FAILURE_CHARS) ?? null;
  if (attempts === 0) return said;
  const times = attempts === 1 ? "tried once" : `tried ${attempts} times`;
  return said === null ? times : `${times}: ${said}`;
}
