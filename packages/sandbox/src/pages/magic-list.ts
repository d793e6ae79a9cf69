import { type Html, html } from "@payhooks/pages";
import { MAGIC_OUTCOMES } from "../payments/magic.ts";

/** The references and phone numbers that decide the outcome of a payment. A click puts a reference into the form. */
export function magicList(): Html {
  return html`<details class="magic">
      <summary>Magic references (sbx-)</summary>
      <p class="hint">A reference that begins like this, or a phone number that ends like this, decides what becomes of the payment.</p>
      <ul>${MAGIC_OUTCOMES.map(
        ({ name, number, does }) =>
          html`<li><button type="button" data-reference="sbx-${name}">sbx-${name}</button><span class="mono">…900000${number}</span><span class="does">${does}</span></li>`,
      )}</ul>
    </details>`;
}
