import type { Currency, Medium, TransactionType } from "../wire.ts";

/** A request for a payment, a withdrawal or a checkout. All rules are checked. */
export interface Order {
  readonly type: TransactionType;
  /** With two decimals. */
  readonly amount: string;
  readonly currency: Currency;
  /** Digits only. */
  readonly phoneNumber: string;
  /** Null until the customer of a checkout has chosen a medium. */
  readonly medium: Medium | null;
  readonly reference: string;
  readonly description: string | null;
  readonly callbackUrl: string | null;
  readonly successUrl: string | null;
  readonly failedUrl: string | null;
  /** Null if it is not a checkout. */
  readonly supportedMediums: readonly Medium[] | null;
  /** The id of the connected merchant whose payment it is, from the header of the call. Null if it is the merchant's. */
  readonly onBehalfOf: string | null;
  /** The faults that the service of the specification refuses, and the sandbox let pass. */
  readonly warnings: readonly string[];
}
