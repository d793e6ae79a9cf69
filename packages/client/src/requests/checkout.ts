import type { JsonObject } from "../json.ts";
import { amountText } from "./amount.ts";
import {
  type Currency,
  callbackUrlText,
  currencyText,
  phoneNumberText,
  redirectsText,
  textField,
} from "./fields.ts";
import { type Medium, mediumsText } from "./medium.ts";
import { writeMembers } from "./members.ts";
import { referenceText } from "./reference.ts";
import type { CheckedRequest, RequestRules } from "./rules.ts";

/** The body of a hosted checkout session (specification, `POST /api/v2/payment/checkout`). */
export interface Checkout<M extends string = Medium> {
  /** Decimal string with exactly two decimals, in units of the currency: `"10.50"`. */
  readonly amount: string;
  readonly currency: Currency;
  /** Country code and number, digits only, without `+`; one space after the country code is accepted. Sent unchanged. */
  readonly phone_number: string;
  /** Yours, unique for the session, at most 100 characters, without `&`. */
  readonly reference: string;
  readonly description?: string | undefined;
  /** HTTPS. Without it no callback comes. */
  readonly callback_url?: string | undefined;
  /** Where the customer is sent afterwards. (A direct payment names these members otherwise.) */
  readonly redirects: { readonly success: string; readonly failed: string };
  /** The mediums that the hosted page offers: at least one, none twice. */
  readonly supported_mediums: readonly M[];
  /** Fields that the specification does not have, sent beside the others. */
  readonly extra?: JsonObject | undefined;
}

/** Checks a checkout session and writes it as JSON. */
export function checkoutRequest(checkout: Checkout<string>, rules: RequestRules): CheckedRequest {
  const body = writeMembers(
    checkout,
    {
      amount: { required: true, text: (value) => amountText(value, rules) },
      currency: { required: true, text: currencyText },
      phone_number: { required: true, text: phoneNumberText },
      reference: { required: true, text: referenceText },
      description: { text: (value) => textField(value, "description") },
      callback_url: { text: (value) => callbackUrlText(value, rules) },
      redirects: {
        required: true,
        text: (value) => redirectsText(value, ["success", "failed"], { required: true }),
      },
      supported_mediums: { required: true, text: (value) => mediumsText(value, rules) },
    },
    { extra: true },
  );
  return { body, reference: checkout.reference };
}
