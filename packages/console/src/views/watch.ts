import type { LeaseView } from "@payhooks/core";
import { type Html, html } from "@payhooks/pages";
import { moment, untrustedText } from "./text.ts";

/** The lease of `watch` of `@payhooks/client`, whose note is shown. */
export const WATCH_LEASE = "payhooks-missed-callbacks";

/** The look-ups of payments that had no callback, by any process. Empty if no process makes them. */
export function watchLine(view: LeaseView | null): Html {
  const note = view === null ? null : noteIn(view.note);
  if (view === null || note === null) return html``;
  const { endedAt, beganAt, counts } = note;
  const when =
    endedAt === null
      ? html`${view.isTaken ? "a round began at" : "a round was broken off that began at"} ${moment(beganAt)}`
      : html`the last round ended at ${moment(endedAt)}`;
  const outcomes = Object.entries(counts).map(([outcome, count]) => `${outcome} ${String(count)}`);
  return html`<p class="hint">Missed callbacks: ${when}. Open payments: ${note.open}, old enough to be looked up: ${note.due}, given up: ${note.givenUp}.${outcomes.length > 0 && html` Look-ups: ${untrustedText(outcomes.join(", "))}.`}${note.trouble !== null && html` Last error: ${untrustedText(note.trouble)}.`}</p>`;
}

interface WatchNote {
  readonly beganAt: number;
  readonly endedAt: number | null;
  readonly open: number;
  readonly due: number;
  readonly givenUp: number;
  readonly counts: Readonly<Record<string, unknown>>;
  readonly trouble: string | null;
}

/** Null for a text that is not a note: another version may write its notes differently. */
function noteIn(text: string): WatchNote | null {
  try {
    const { beganAt, endedAt, open, due, givenUp, counts, trouble } = JSON.parse(text);
    const isRight = [beganAt, open, due].every((value) => typeof value === "number");
    if (!isRight || typeof counts !== "object" || counts === null || !Array.isArray(givenUp)) return null;
    return {
      ...{ beganAt, open, due, counts },
      endedAt: typeof endedAt === "number" ? endedAt : null,
      givenUp: givenUp.length,
      trouble: typeof trouble === "string" ? trouble : null,
    };
  } catch {
    return null;
  }
}
