import type { Context } from "hono";
import type { Sandbox } from "../sandbox.ts";
import { breakCard, connectCard, keysCard, triggerCard } from "./controls.ts";
import { deliveryRow } from "./delivery-row.ts";
import { html } from "./html.ts";
import { MARK, page } from "./layout.ts";
import { transactionRow } from "./transaction-row.ts";

/** How many transactions and deliveries the dashboard shows; the control API has all. */
const SHOWN = 100;

/** The dashboard at `/`. */
export function dashboardPage(c: Context, sandbox: Sandbox, callbackUrl: string): Response {
  const transactions = sandbox.transactions.list().slice(-SHOWN).reverse();
  const deliveries = sandbox.deliveries.list().slice(-SHOWN).reverse();
  const body = html`<header class="top">
  <div class="bar">${MARK}<h1>Payhooks sandbox</h1><span class="address mono">${sandbox.url}</span>
    <span class="end"><span class="live" id="live" data-state="connecting" role="status">connecting</span>
    <button data-post="/sandbox/reset" data-confirm="Clear transactions, deliveries, faults, accounts and settings? Keys are kept.">Reset</button></span></div>
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
    <section class="card" id="transactions" aria-labelledby="transactions-title">
      <header><h2 id="transactions-title">Transactions</h2><span class="end hint">newest first, UTC</span></header>
      <div class="list" data-list="transaction" data-limit="${SHOWN}">${transactions.map(transactionRow)}
        <p class="empty">Nothing yet. Take a deposit here, or send one to<br><code>POST ${sandbox.url}/api/v2/payment/direct</code></p></div>
    </section>
    <section class="card" id="deliveries" aria-labelledby="deliveries-title">
      <header><h2 id="deliveries-title">Dispatch log</h2><span class="end hint">open one for payload and signature</span></header>
      <div class="list" data-list="delivery" data-limit="${SHOWN}">${deliveries.map(deliveryRow)}
        <p class="empty">No callback or webhook was sent yet. A transaction with a callback address sends one.</p></div>
    </section>
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
