import { type Html, html, LOGO } from "@payhooks/pages";
import type { Context } from "hono";
import { MEDIUM_TEXTS } from "../payments/mediums.ts";
import type { TransactionRecord } from "../payments/transactions.ts";
import type { Medium, TransactionStatus } from "../wire.ts";
import { page } from "./layout.ts";

/** The hosted page of a checkout, which the customer sees at `checkout_url`. */
export function checkoutPage(
  c: Context,
  record: TransactionRecord,
  problem: string | null,
): Response | Promise<Response> {
  const { order, transaction } = record;
  const [only, second] = order.supportedMediums ?? [];
  const selectedMedium = second === undefined ? only : undefined;
  const body = card(html`
    ${who(record)}
    <div>
      <p class="total">${groupThousands(order.amount)}<small>${order.currency}</small></p>
      ${order.description && html`<p class="about">${order.description}</p>`}
    </div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <form method="post" action="/checkout/${transaction.id}">
      <fieldset>
        <legend>Pay with</legend>
        ${(order.supportedMediums ?? []).map((medium) => choice(medium, medium === selectedMedium))}
      </fieldset>
      <div class="choices">
        <button class="primary" name="decision" value="pay">Pay ${groupThousands(order.amount)} ${order.currency}</button>
        <button name="decision" value="fail">Let it fail</button>
        <button name="decision" value="cancel" formnovalidate>Cancel</button>
      </div>
    </form>
    <p class="small">Phone ${transaction.phone_number}</p>`);
  const status = problem === null ? 200 : 400;
  return page(c, { title: `Pay ${order.amount} ${order.currency}`, body, bodyClass: "checkout", status });
}

const RESULT_TEXTS: Readonly<Record<Exclude<TransactionStatus, "PENDING">, { sign: Html; title: string }>> = {
  SUCCESS: { sign: html`<div class="sign good" aria-hidden="true">✓</div>`, title: "Payment complete" },
  FAILED: { sign: html`<div class="sign bad" aria-hidden="true">✕</div>`, title: "Payment failed" },
  CANCELLED: { sign: html`<div class="sign" aria-hidden="true">–</div>`, title: "Payment cancelled" },
};

/** The page after the customer's decision. It waits for the result, and then leads back to the merchant. */
export function afterCheckoutPage(c: Context, record: TransactionRecord): Response | Promise<Response> {
  const { transaction, order } = record;
  const { status, id } = transaction;
  if (status === "PENDING") {
    const body = card(
      html`<div class="spinner"></div>
      <h1>Waiting for ${order.medium ? MEDIUM_TEXTS[order.medium].name : "the result"}</h1>
      <p class="about" role="status">${transaction.message}</p>`,
      "result",
    );
    const refresh = { seconds: 1, url: `/checkout/${id}` };
    return page(c, { title: "Waiting for the result", body, bodyClass: "checkout", refresh });
  }
  const { sign, title } = RESULT_TEXTS[status];
  const back = status === "SUCCESS" ? order.successUrl : order.failedUrl;
  const body = card(
    html`${sign}
    <div role="status"><h1>${title}</h1><p class="about">${transaction.message}</p></div>
    <p class="total">${groupThousands(order.amount)}<small>${order.currency}</small></p>
    ${
      back &&
      html`<a class="button primary" href="${back}">Back to the merchant</a>
    <p class="small">You will be taken to ${back}</p>`
    }`,
    "result",
  );
  const refresh = back === null ? undefined : { seconds: 3, url: back };
  return page(c, { title, body, bodyClass: "checkout", refresh });
}

/** The page at the end of a checkout that was opened from the dashboard, and for unknown checkouts. */
export function plainPage(
  c: Context,
  title: string,
  text: string,
  status: 200 | 404 = 200,
): Response | Promise<Response> {
  const body = card(
    html`<h1>${title}</h1><p class="about">${text}</p>
    <a class="button" href="/">To the dashboard</a>`,
    "result",
  );
  return page(c, { title, body, bodyClass: "checkout", status });
}

function card(inside: Html, kind: "result" | "" = ""): Html {
  return html`<main class="checkout-card">
  <p class="ribbon">Sandbox: no money is moved</p>
  <div class="inside ${kind}">${inside}</div>
</main>`;
}

function who({ transaction }: TransactionRecord): Html {
  return html`<div class="who">${LOGO}<div><h1>Sandbox merchant</h1><p>Order ${transaction.reference}</p></div></div>`;
}

function choice(medium: Medium, isSelected: boolean): Html {
  const { name, prefix } = MEDIUM_TEXTS[medium];
  return html`<label class="medium"><span class="badge" aria-hidden="true">${prefix}</span>${name}<input type="radio" name="medium" value="${medium}" required ${isSelected && html`checked`}></label>`;
}

/** 1250000.50 → 1,250,000.50 */
export function groupThousands(amount: string): string {
  return amount.replace(/\B(?=(?:\d{3})+(?=\.))/g, ",");
}
