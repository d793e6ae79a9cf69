import { type Html, html } from "@payhooks/pages";
import { FAULT_KINDS, type Fault } from "../faults/kinds.ts";
import type { Sandbox } from "../sandbox.ts";
import { CURRENCIES, MEDIUMS, STATUSES } from "../wire.ts";
import { magicList } from "./magic-list.ts";
import { pill } from "./parts.ts";

const options = (values: readonly string[], selectedValue = ""): Html[] =>
  values.map((value) => html`<option ${value === selectedValue && html`selected`}>${value}</option>`);

/** The card that starts transactions and checkouts. */
export function triggerCard(defaultCallbackUrl: string): Html {
  const payment = (
    kind: string,
    path: string,
    label: string,
    isHidden: boolean,
  ) => html`<form id="tab-${kind}" role="tabpanel" aria-labelledby="tab-button-${kind}" data-post="${path}" ${isHidden && html`hidden`}>
    <div class="pair"><label>Amount<input name="amount" value="10.00" inputmode="decimal" required></label>
      <label>Currency<select name="currency">${options(CURRENCIES)}</select></label></div>
    <div class="pair">${
      kind === "checkout"
        ? html`<label>Phone<input name="phone_number" value="251911234567" inputmode="tel"></label>`
        : html`<label>Medium<select name="medium">${options(MEDIUMS, "TELEBIRR")}</select></label>`
    }
      <label>Outcome<select name="outcome"><option value="">default</option>${options(STATUSES)}</select></label></div>
    <label>Reference<input name="reference" placeholder="made up if left empty" maxlength="100" autocomplete="off"></label>
    <label>Callback address<input name="callback_url" type="url" value="${defaultCallbackUrl}" placeholder="http://127.0.0.1:3000/callbacks/pay"></label>
    <button class="primary">${label}</button>
  </form>`;
  const tab = (kind: string, label: string, isSelected: boolean) =>
    html`<button type="button" role="tab" id="tab-button-${kind}" aria-controls="tab-${kind}" aria-selected="${isSelected ? "true" : "false"}" ${!isSelected && html`tabindex="-1"`}>${label}</button>`;
  return html`<section class="card" id="trigger" aria-labelledby="trigger-title">
  <header><h2 id="trigger-title">Trigger</h2></header>
  <div class="inner">
    <div class="tabs" role="tablist" aria-label="What to trigger">${tab("deposit", "Deposit", true)}${tab("withdrawal", "Withdrawal", false)}${tab("checkout", "Checkout", false)}</div>
    ${payment("deposit", "/sandbox/deposits", "Take a deposit", false)}
    ${payment("withdrawal", "/sandbox/withdrawals", "Send a withdrawal", true)}
    ${payment("checkout", "/sandbox/checkouts", "Open a checkout", true)}
    ${magicList()}
  </div>
</section>`;
}

/** The card that adds and removes faults. */
export function breakCard(faults: readonly Fault[]): Html {
  const kinds = Object.entries(FAULT_KINDS);
  const group = (scope: string, label: string) =>
    html`<optgroup label="${label}">${kinds.filter(([, kind]) => kind.scope === scope).map(([name]) => html`<option>${name}</option>`)}</optgroup>`;
  return html`<section class="card" id="break" aria-labelledby="break-title">
  <header><h2 id="break-title">Break</h2><span class="end count">${faults.length || ""}</span></header>
  <div class="inner">
    <form data-post="/sandbox/faults">
      <label>Fault<select name="kind" data-explain="${JSON.stringify(FAULT_KINDS)}">${group("delivery", "Deliveries")}${group("api", "The service's answers")}</select></label>
      <p class="hint" data-explanation>${FAULT_KINDS.duplicate.does}</p>
      <div class="pair"><label>How often<select name="how"><option value="once">once</option><option value="0.1">10 % of all</option><option value="0.5">50 % of all</option><option value="1">always</option></select></label>
      <label>Reference<input name="reference" placeholder="any" autocomplete="off"></label></div>
      <button>Break it</button>
    </form>
    <ul class="faults" aria-label="Faults waiting to happen">${faults.map(faultItem)}</ul>
  </div>
</section>`;
}

function faultItem({ id, kind, remaining, rate, reference }: Fault): Html {
  const often = remaining === null ? `${Math.round((rate ?? 1) * 100)} %` : `${remaining}×`;
  return html`<li><span>${kind} · ${often}${reference && html` · ${reference}`}</span><button data-delete="/sandbox/faults/${id}" aria-label="Remove fault ${kind}">remove</button></li>`;
}

/** The card with the merchant's keys, to copy and to rotate. */
export function keysCard({ keys, url }: Sandbox): Html {
  const secret = (label: string, value: string) =>
    html`<div class="field"><span>${label}</span><div class="secret"><code>${value}</code><button type="button" data-copy="${value}" aria-label="Copy ${label}">Copy</button></div></div>`;
  return html`<section class="card" id="keys" aria-labelledby="keys-title">
  <header><h2 id="keys-title">Keys</h2></header>
  <div class="inner">
    ${secret("Base address", url)}
    ${secret("X-API-Key, payments", keys.apiKey)}
    ${secret("X-API-Key, connected accounts", keys.connectApiKey)}
    ${secret(`Public key ${keys.keyId}`, keys.publicKey)}
    <div class="actions"><a class="button" href="/sandbox/keys/public.pem" download>Download PEM</a>
      <button data-post="/sandbox/keys/rotate" data-confirm="Make a new RSA key? Receivers with the old public key will refuse what is signed from now on.">Rotate key</button></div>
  </div>
</section>`;
}

/** The card for webhook settings, KYC and settlement decisions. */
export function connectCard(sandbox: Sandbox): Html {
  const settings = sandbox.settings.get();
  const accounts = sandbox.accounts.list().slice(-5).reverse();
  const settlements = sandbox.settlements.list().slice(-5).reverse();
  const decide = (path: string, label: string) =>
    html`<div class="actions">${(["approved", "declined"] as const).map(
      (decision) =>
        html`<button data-post="${path}" data-body="${JSON.stringify({ decision })}" aria-label="${label} ${decision}">${decision === "approved" ? "Approve" : "Decline"}</button>`,
    )}</div>`;
  return html`<section class="card" id="connect" aria-labelledby="connect-title">
  <header><h2 id="connect-title">Connected accounts</h2>${pill(settings.webhook_enabled ? "webhooks on" : "webhooks off")}</header>
  <div class="inner">
    <form data-put="/sandbox/settings">
      <label>Webhook address<input name="webhook_url" type="url" value="${settings.webhook_url ?? ""}" placeholder="http://127.0.0.1:3000/webhooks/connect"></label>
      <label>Secret<input name="webhook_secret" value="${settings.webhook_secret ?? ""}" autocomplete="off" placeholder="none: unsigned"></label>
      <label class="check"><input type="checkbox" name="webhook_enabled" ${settings.webhook_enabled && html`checked`}>Send webhooks</label>
      <button>Save settings</button>
    </form>
    <div class="actions"><button data-post="/sandbox/connected-accounts">New account</button><button data-post="/sandbox/settlements">New settlement</button></div>
    ${accounts.map(({ id, kyc_status }) => html`<div class="field"><span class="line"><span class="name">${id}</span><span class="end">${pill(kyc_status)}</span></span>${decide(`/sandbox/connected-accounts/${id}/kyc`, `KYC of ${id}:`)}</div>`)}
    ${settlements.length > 0 && html`<p class="hint">The service does not send settlement events today; the sandbox does.</p>`}
    ${settlements.map(({ id, status, amount }) => html`<div class="field"><span class="line"><span class="name">${id}</span><span class="end">${amount} ${pill(status)}</span></span>${decide(`/sandbox/settlements/${id}/decision`, `Settlement ${id}:`)}</div>`)}
  </div>
</section>`;
}
