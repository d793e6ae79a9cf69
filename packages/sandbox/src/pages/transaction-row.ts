import { clockTime, type Html, html } from "@payhooks/pages";
import type { TransactionRecord } from "../payments/transactions.ts";
import type { TransactionStatus } from "../wire.ts";
import { groupThousands } from "./checkout.ts";
import { pill } from "./parts.ts";

/**
 * One transaction in the list. It shows the status path and, when it is opened, the fields and the possible actions.
 */
export function transactionRow(record: TransactionRecord): Html {
  const { transaction, order } = record;
  const { id, reference, medium } = transaction;
  const kind = order.supportedMediums ? "CHECKOUT" : order.type;
  return html`<details class="row" id="transaction-${id}">
  <summary>
    <span class="line"><span class="name">${reference}</span><span class="end amount">${groupThousands(order.amount)} ${order.currency}</span></span>
    <span class="line"><span class="sub">${kind} · ${medium || "no medium yet"} · ${transaction.phone_number}</span>
      <span class="end sub">${callbackNote(record)}</span></span>
    ${statusPath(record)}
  </summary>
  <div class="open">
    <dl class="facts">
      <dt>id</dt><dd class="mono">${id}</dd>
      <dt>message</dt><dd>${transaction.message}</dd>
      ${record.providerTxId && html`<dt>provider id</dt><dd class="mono">${record.providerTxId}</dd>`}
      <dt>callback_url</dt><dd class="mono">${order.callbackUrl ?? "none: no callbacks are sent"}</dd>
      ${order.onBehalfOf && html`<dt>on behalf of</dt><dd class="mono">${order.onBehalfOf}</dd>`}
      ${order.warnings.map((warning) => html`<dt>warning</dt><dd>${warning}</dd>`)}
      ${order.description && html`<dt>description</dt><dd>${order.description}</dd>`}
      ${order.supportedMediums && html`<dt>hosted page</dt><dd><a href="/checkout/${id}" target="_blank">/checkout/${id}</a></dd>`}
    </dl>
    <div class="actions" role="group" aria-label="Move ${reference} to a status"><span class="hint">Move to</span>
      ${(["SUCCESS", "FAILED", "PENDING", "CANCELLED"] as const).map(
        (to) =>
          html`<button data-post="/sandbox/transactions/${id}/status" data-body="${JSON.stringify({ status: to })}">${to}</button>`,
      )}
    </div>
  </div>
</details>`;
}

function statusPath({ history, coming, awaitsCustomer }: TransactionRecord): Html {
  const waits =
    awaitsCustomer && html`<li class="coming"><span class="pill">waiting for the customer</span></li>`;
  return html`<ol class="path" aria-label="Status path">
      ${history.map(({ status, at }) => html`<li>${pill(status)} ${clockTime(at)}</li>`)}
      ${coming.map(({ status }) => html`<li class="coming">${pill(status, "coming: ")}</li>`)}${waits}
    </ol>`;
}

function callbackNote({ transaction, order }: TransactionRecord): string {
  const isFinal: Readonly<Record<TransactionStatus, boolean>> = {
    SUCCESS: true,
    FAILED: true,
    PENDING: false,
    CANCELLED: false,
  };
  if (transaction.webhook_received) return "callback received";
  if (order.callbackUrl === null) return "no callback address";
  return isFinal[transaction.status] ? "callback not received" : "";
}
