import type { Currency, Medium, TransactionType } from "../wire.ts";

/** What was asked for: a payment, a withdrawal or a checkout, with every rule checked. */
export interface Order {
  readonly type: TransactionType;
  /** With two decimals. */
  readonly amount: string;
  readonly currency: Currency;
  /** Digits only. */
  readonly phoneNumber: string;
  /** Null until the customer of a checkout has chosen. */
  readonly medium: Medium | null;
  readonly reference: string;
  readonly description: string | null;
  readonly callbackUrl: string | null;
  readonly successUrl: string | null;
  readonly failedUrl: string | null;
  readonly merchantPaysFee: boolean;
  /** Null for what is no checkout. */
  readonly supportedMediums: readonly Medium[] | null;
}
