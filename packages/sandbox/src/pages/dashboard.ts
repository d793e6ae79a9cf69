import { html, LOGO } from "@payhooks/pages";
import type { Context } from "hono";
import type { Sandbox } from "../sandbox.ts";
import { breakCard, connectCard, keysCard, triggerCard } from "./controls.ts";
import { type FeedFilter, feedLists, filterForm } from "./feed.ts";
import { page } from "./layout.ts";

/** The dashboard at `/`. */
export function dashboardPage(
  c: Context,
  sandbox: Sandbox,
  callbackUrl: string,
  filter: FeedFilter,
): Response | Promise<Response> {
  const body = html`<header class="top">
  <div class="bar">${LOGO}<h1>Payhooks sandbox</h1><span class="address mono">${sandbox.url}</span>
    <span class="end"><span class="live" id="live" data-state="connecting" role="status">connecting</span>
    <button data-post="/sandbox/reset" data-confirm="Clear transactions, deliveries, scripts and accounts? Faults and settings become those of the start. Keys are kept.">Reset</button></span></div>
  <nav class="jump" aria-label="Sections"><a href="#trigger">Trigger</a><a href="#transactions">Transactions</a><a href="#deliveries">Deliveries</a><a href="#break">Break</a><a href="#keys">Keys</a><a href="#connect">Accounts</a></nav>
</header>
<main>
  <div class="side">
    ${triggerCard(callbackUrl)}
    ${breakCard(sandbox.faults.list())}
    ${keysCard(sandbox)}
    ${connectCard(sandbox)}
  </div>
  <div class="feed">
    ${filterForm(filter)}
    <div class="lists" id="lists">${feedLists(sandbox, filter)}</div>
  </div>
</main>
<div class="toast" id="toast" role="status" aria-live="polite"></div>`;
  return page(c, {
    title: "Payhooks sandbox",
    body,
    bodyClass: "dashboard",
    script: "/sandbox/assets/dashboard.js",
  });
}
