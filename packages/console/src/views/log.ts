import type { Notice } from "@payhooks/core";
import { type Html, html, pill, type Tone } from "@payhooks/pages";
import type { Activity, LogEntry } from "../activity/activity.ts";
import { addressOf, type ConsoleQuery } from "../query.ts";
import type { Redactor } from "../redaction/redaction.ts";
import { count, moment, untrustedText } from "./text.ts";

const NOTICE_TONES: Readonly<Record<LogEntry["notice"]["type"], Tone>> = {
  replayed: "good",
  discarded: "",
  erased: "",
  alert: "bad",
  "data-lost": "bad",
  "inbox-error": "bad",
  warning: "wait",
  "keys-changed": "good",
  "keys-unreadable": "bad",
};

/** The decisions that people made and the problems that somebody should look at, as this process has seen them. */
export function logCard(activity: Activity, query: ConsoleQuery, redactor: Redactor, watching: Html): Html {
  const { entries } = activity;
  return html`<header><h2 id="log-title">Decisions and trouble</h2><span class="end hint">seen by this process</span></header>
${watching}
${entries.length === 0 && html`<p class="empty">This process has noted no decision, alert or failure since ${moment(activity.since)}. Events may be held all the same.</p>`}
<ol class="log">${entries.map(
    ({ at, notice }) =>
      html`<li><span class="line">${pill(notice.type, NOTICE_TONES[notice.type])}<span class="end sub">${moment(at)}</span></span><span class="said">${textOf(notice, query, redactor)}</span></li>`,
  )}</ol>`;
}

function textOf(notice: LogEntry["notice"], query: ConsoleQuery, redactor: Redactor): Html {
  switch (notice.type) {
    case "replayed":
    case "discarded":
      return decision(notice, query, redactor);
    case "erased":
      return html`${untrustedText(notice.by)}: ${count(notice.count)} ${notice.count === 1 ? "event" : "events"}, of which only the ids are left${notice.count === 1 && html`: <a href="${addressOf(query, { eventId: notice.eventIds[0] ?? null })}">the event</a>`}`;
    case "alert":
      return notice.kind === "held-full"
        ? html`${notice.flow}: too many events are held, and further ones are refused.`
        : html`${notice.flow}: ${notice.failures} deliveries were refused with ${notice.code}${notice.kind === "all-failing" ? ", and none was accepted. Check the key." : "."}`;
    case "data-lost":
      return notice.why === "replaced"
        ? html`The store does not have the data that it had: it was emptied, or replaced.`
        : html`The store drops records when it is full: events may be lost.`;
    case "inbox-error":
      return html`${notice.during}: ${untrustedText(notice.error)}${notice.count > 1 && ` (${notice.count} times)`}`;
    case "keys-changed":
      return html`${notice.option}: its keys were read again, and are others now: ${untrustedText(notice.keyIds.map((keyId) => keyId.slice(0, 16)).join(", "))}.`;
    case "keys-unreadable":
      return html`${notice.option}: its keys could not be read again, and the last ones are used until they can be. ${notice.code}: ${untrustedText(notice.error)}`;
    case "warning":
      return html`${untrustedText(notice.what)} ${untrustedText(notice.fix)}`;
  }
}

function decision(
  { eventId, by, note }: Extract<Notice, { readonly type: "replayed" | "discarded" }>,
  query: ConsoleQuery,
  { withoutFields }: Redactor,
): Html {
  const said = withoutFields.redactText(note);
  return html`${untrustedText(by)}: ${said === null ? html`<span class="hint">the note is not shown here</span>` : html`“${untrustedText(said)}”`} <a href="${addressOf(query, { eventId })}">the event</a>`;
}
