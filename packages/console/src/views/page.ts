import { type Html, html, ICON, LOGO, pageDocument } from "@payhooks/pages";
import type { ConsoleUser } from "../options.ts";
import type { ConsoleQuery } from "../query.ts";
import { consoleScript } from "./console.script.ts";
import { STYLES } from "./styles.ts";
import { untrustedText } from "./text.ts";

/** The files of the page, by the names in their addresses. */
export const ASSETS: ReadonlyMap<string, { readonly type: string; readonly text: () => string }> = new Map([
  ["console.css", { type: "text/css; charset=utf-8", text: () => STYLES }],
  ["console.js", { type: "text/javascript; charset=utf-8", text: consoleScript }],
  ["icon.svg", { type: "image/svg+xml", text: () => ICON }],
]);

const asset = (name: string): string => `?asset=${name}`;

/** The parts of the page that are updated while it is open, by the ids of their elements. */
export interface Regions {
  readonly counts: Html;
  readonly health: Html;
  readonly activity?: Html;
  readonly reasons?: Html;
  readonly events?: Html;
  readonly log?: Html;
  readonly eventPage?: Html;
}

/** The whole page. */
export function consolePage(
  user: ConsoleUser,
  query: ConsoleQuery,
  regions: Regions,
  { filter, problem }: { readonly filter: Html; readonly problem: string | null },
): Html {
  const { counts, health, activity, reasons, events, log, eventPage } = regions;
  const body = html`<a class="skip" href="#main">To the events</a>
<header class="top"><div class="bar">${LOGO}<h1>Payhooks console</h1>
  <span class="end"><span class="live" id="live" data-state="connecting">connecting</span><span class="who" title="You act as">${untrustedText(user.by)}</span></span></div></header>
<nav class="counts" id="counts" aria-label="Events by state">${counts}</nav>
<main id="main" tabindex="-1">
  <div id="health" role="status">${health}</div>
  <p class="trouble" id="problem" role="alert" ${problem === null && html`hidden`}>${problem}</p>
  ${
    eventPage === undefined
      ? html`${filter}
  <div class="overview">
    <div class="feed"><div id="reasons">${reasons}</div><section class="card" id="events" aria-labelledby="events-title">${events}</section></div>
    <div class="side"><section class="card" id="activity" aria-labelledby="activity-title">${activity}</section>
    <section class="card" id="log" aria-labelledby="log-title">${log}</section></div>
  </div>`
      : html`<div class="event-page" id="eventPage">${eventPage}</div><p class="hint zones" id="zones">Times: UTC</p>`
  }
</main>
${dialog()}
<div class="sr" id="said" role="status" aria-live="polite"></div>
<div class="toast" id="toast" role="status" aria-live="polite"></div>`;
  const title = query.eventId === null ? "Payhooks console" : "An event – Payhooks console";
  return pageDocument({
    title,
    body,
    bodyClass: "console",
    icon: asset("icon.svg"),
    style: asset("console.css"),
    script: asset("console.js"),
  });
}

/** The dialog that shows the events of a decision, asks for a note, and shows the progress. */
function dialog(): Html {
  return html`<dialog id="decide" aria-labelledby="decide-title" aria-describedby="decide-what"><form id="decide-form" method="dialog">
  <h2 id="decide-title">Replay</h2>
  <p id="decide-what" role="status"></p>
  <div id="planned" tabindex="-1"></div>
  <label>Why? The note is kept with your name.<textarea id="note" rows="3" maxlength="500" required></textarea></label>
  <label class="check" id="expired"><input type="checkbox" id="even-if-expired">Run it even if it is so old that an earlier run may have been forgotten</label>
  <div class="progress" id="progress" hidden><progress id="bar" value="0" max="1" aria-label="Progress"></progress><p id="progress-text" role="status" aria-live="polite"></p><ul class="failures" id="failures"></ul></div>
  <div class="actions"><button class="primary" id="confirm" value="confirm">Replay</button><button type="button" id="cancel">Cancel</button></div>
</form></dialog>`;
}

/** A page with one message. It has no script. */
export function plainPage(title: string, text: string): Html {
  return pageDocument({
    title,
    body: html`<main class="plain"><section class="card"><header>${LOGO}<h1>${title}</h1></header><div class="inner"><p>${text}</p></div></section></main>`,
    bodyClass: "console",
    icon: asset("icon.svg"),
    style: asset("console.css"),
  });
}
