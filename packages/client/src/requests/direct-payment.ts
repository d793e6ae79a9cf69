import { ClientError } from "../errors.ts";
import type { JsonObject } from "../json.ts";
import { amountText } from "./amount.ts";
import {
  booleanField,
  type Currency,
  callbackUrlText,
  currencyText,
  phoneNumberText,
  redirectsText,
  textField,
} from "./fields.ts";
import { type Medium, mediumText } from "./medium.ts";
import { writeMembers } from "./members.ts";
import { referenceText } from "./reference.ts";
import type { CheckedRequest, RequestRules } from "./rules.ts";

/** The body of a direct payment (specification, `POST /api/v2/payment/direct`). */
export interface DirectPayment<M extends string = Medium> {
  /** A decimal string with exactly two decimals, in units of the currency: `"10.50"`. */
  readonly amount: string;
  readonly currency: Currency;
  /** The country code and the number, as digits without `+`. One space may follow the code; it is not sent. */
  readonly phone_number: string;
  readonly medium: M;
  readonly description?: string | undefined;
  /**
   * Your reference. It must be unique, and have at most 100 characters and no `&`. Store it before the call: you need
   * it to look an unknown outcome up.
   */
  readonly reference: string;
  /** A URL with HTTPS. Without it, no callback is sent. */
  readonly callback_url?: string | undefined;
  readonly redirects?:
    | { readonly success_url?: string | undefined; readonly failure_url?: string | undefined }
    | undefined;
  /** True if you pay the fees. It is for payments in `USD`, and refused with another currency. */
  readonly merchant_pays_fee?: boolean | undefined;
  /** Further fields, which the specification does not have. They are sent beside the others. */
  readonly extra?: JsonObject | undefined;
}

/** Checks the request for a direct payment, and writes it as JSON. */
export function directPaymentRequest(payment: DirectPayment<string>, rules: RequestRules): CheckedRequest {
  const body = writeMembers(
    payment,
    {
      amount: { required: true, text: (value) => amountText(value, rules) },
      currency: { required: true, text: currencyText },
      phone_number: { required: true, text: phoneNumberText },
      medium: { required: true, text: (value) => mediumText(value, rules) },
      description: { text: (value) => textField(value, "description") },
      reference: { required: true, text: referenceText },
      callback_url: { text: (value) => callbackUrlText(value, rules) },
      redirects: {
        text: (value) => redirectsText(value, ["success_url", "failure_url"], { required: false }),
      },
      merchant_pays_fee: { text: (value) => feeText(value, payment.currency) },
    },
    { extra: true },
  );
  return { body, reference: payment.reference };
}

function feeText(value: unknown, currency: Currency): string {
  const text = booleanField(value, "merchant_pays_fee");
  if (currency === "USD") return text;
  throw new ClientError("ERR_FIELD_INVALID", `merchant_pays_fee is given for a payment in ${currency}.`, {
    fix: "Leave it out: it applies to USD payments.",
    field: "merchant_pays_fee",
  });
}
