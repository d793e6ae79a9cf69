import { type Html, html, type Tone, pill as tonedPill } from "@payhooks/pages";

const STATUS_TONES: Readonly<Record<string, Tone>> = {
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

/** A label for a fault that happened. */
export function faultBadge(kind: string): Html {
  return html`<span class="pill fault">fault: ${kind}</span>`;
}

/** A label for a status, in the colour of its meaning. Only screen readers read `before`. */
export function pill(status: string, before = ""): Html {
  return tonedPill(status, STATUS_TONES[status] ?? "", before);
}
