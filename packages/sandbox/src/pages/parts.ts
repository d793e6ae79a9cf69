import { type Html, html } from "./html.ts";

const TONES: Readonly<Record<string, string>> = {
  SUCCESS: "good",
  approved: "good",
  delivered: "good",
  "webhooks on": "good",
  FAILED: "bad",
  declined: "bad",
  "gave-up": "bad",
  PENDING: "wait",
  retrying: "wait",
  sending: "wait",
  scheduled: "wait",
};

/** A fault that happened. */
export function faultBadge(kind: string): Html {
  return html`<span class="pill fault">fault: ${kind}</span>`;
}

/** A status, coloured by what it means; `before` is for screen readers only. */
export function pill(status: string, before = ""): Html {
  return html`<span class="pill ${TONES[status] ?? ""}">${before && html`<span class="sr">${before}</span>`}${status}</span>`;
}

/** An ISO time as hours, minutes and seconds in UTC; the dashboard's script adds the local ones. */
export function clockTime(iso: string): Html {
  return html`<time datetime="${iso}" title="${iso}">${iso.slice(11, 19)}</time>`;
}
