import type { JsonObject } from "../json.ts";
import { amountText } from "./amount.ts";
import { type Currency, callbackUrlText, currencyText, phoneNumberText, textField } from "./fields.ts";
import { type Medium, mediumText } from "./medium.ts";
import { writeMembers } from "./members.ts";
import { referenceText } from "./reference.ts";
import type { CheckedRequest, RequestRules } from "./rules.ts";

/**
 * The body of a withdrawal (specification, `POST /api/v2/payment/withdrawal`, which does not show its parameters). The
 * client requires the amount and the reference, without which an unknown outcome could not be looked up. The other
 * names are those of a direct payment. Put whatever else the documentation of your account asks for into `extra`.
 */
export interface Withdrawal<M extends string = Medium> {
  /** A decimal string with exactly two decimals, in units of the currency: `"10.50"`. */
  readonly amount: string;
  /** Your reference. It must be unique, and have at most 100 characters and no `&`. */
  readonly reference: string;
  readonly currency?: Currency | undefined;
  /** The customer's phone number, as for a direct payment. */
  readonly phone_number?: string | undefined;
  readonly medium?: M | undefined;
  readonly description?: string | undefined;
  /** A URL with HTTPS. */
  readonly callback_url?: string | undefined;
  /** Further fields, such as an account number. They are sent beside the others. */
  readonly extra?: JsonObject | undefined;
}

/** Checks the request for a withdrawal, and writes it as JSON. */
export function withdrawalRequest(withdrawal: Withdrawal<string>, rules: RequestRules): CheckedRequest {
  const body = writeMembers(
    withdrawal,
    {
      amount: { required: true, text: (value) => amountText(value, rules) },
      currency: { text: currencyText },
      phone_number: { text: phoneNumberText },
      medium: { text: (value) => mediumText(value, rules) },
      description: { text: (value) => textField(value, "description") },
      reference: { required: true, text: referenceText },
      callback_url: { text: (value) => callbackUrlText(value, rules) },
    },
    { extra: true },
  );
  return { body, reference: withdrawal.reference };
}
