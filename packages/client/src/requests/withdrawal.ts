import type { JsonObject } from "../json.ts";
import { amountText } from "./amount.ts";
import { type Currency, callbackUrlText, currencyText, phoneNumberText, textField } from "./fields.ts";
import { type Medium, mediumText } from "./medium.ts";
import { writeMembers } from "./members.ts";
import { referenceText } from "./reference.ts";
import type { CheckedRequest, RequestRules } from "./rules.ts";

/**
 * The body of a withdrawal (specification, `POST /api/v2/payment/withdrawal`, which does not show its parameters).
 * The client insists on the amount, and on the reference, without which an unknown outcome could never be looked up.
 * The other names are those of a direct payment; whatever else your account's documentation asks for goes into `extra`.
 */
export interface Withdrawal<M extends string = Medium> {
  /** Decimal string with exactly two decimals, in units of the currency: `"10.50"`. */
  readonly amount: string;
  /** Yours, unique, at most 100 characters, without `&`. */
  readonly reference: string;
  readonly currency?: Currency | undefined;
  /** The customer's, as for a direct payment. */
  readonly phone_number?: string | undefined;
  readonly medium?: M | undefined;
  readonly description?: string | undefined;
  /** HTTPS. */
  readonly callback_url?: string | undefined;
  /** Fields that are not named here, such as an account number, sent beside the others. */
  readonly extra?: JsonObject | undefined;
}

/** Checks a withdrawal and writes it as JSON. */
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
