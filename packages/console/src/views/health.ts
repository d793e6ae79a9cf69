import type { Health } from "@payhooks/core";
import { type Html, html } from "@payhooks/pages";
import { moment, untrustedText } from "./text.ts";

/** The faults of the receiver or its inbox as a whole. Empty if none is known. */
export function healthNotes(health: Health | null, isOpen: boolean): Html {
  const notes: Html[] = [];
  if (!isOpen)
    notes.push(
      html`The receiver of this process is closed, or is closing: it takes no delivery and runs no event.`,
    );
  if (health !== null && !health.ok) {
    notes.push(html`No event can be accepted now. ${health.detail !== null && untrustedText(health.detail)}`);
  }
  if (health !== null && health.lostAt !== null) {
    notes.push(
      html`Stored events were lost, or may have been: this process noticed it at ${moment(health.lostAt)}.`,
    );
  }
  return html`${notes.map((note) => html`<p class="trouble">${note}</p>`)}`;
}
