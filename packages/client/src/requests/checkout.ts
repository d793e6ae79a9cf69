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
  /** A decimal string with exactly two decimals, in units of the currency: `"10.50"`. */
  readonly amount: string;
  readonly currency: Currency;
  /** The country code and the number, as digits without `+`. One space may follow the code; it is not sent. */
  readonly phone_number: string;
  /** Your reference. It must be unique for the session, and have at most 100 characters and no `&`. */
  readonly reference: string;
  readonly description?: string | undefined;
  /** A URL with HTTPS. Without it, no callback is sent. */
  readonly callback_url?: string | undefined;
  /** The pages to which the customer is sent afterwards. A direct payment has other names for these members. */
  readonly redirects: { readonly success: string; readonly failed: string };
  /** The mediums that the hosted page offers: at least one, and none twice. */
  readonly supported_mediums: readonly M[];
  /** Further fields, which the specification does not have. They are sent beside the others. */
  readonly extra?: JsonObject | undefined;
}

/** Checks the request for a checkout session, and writes it as JSON. */
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
