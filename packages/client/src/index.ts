/**
 * The typed client of the payment service. It has all seven endpoints, and what a receiver needs look-ups for.
 *
 * @module
 */
export type { Answer, CheckoutAnswer, PaymentAnswer, WebhookSettingsAnswer } from "./answers.ts";
export { type ConnectClient, createClient, type PaymentsClient } from "./client.ts";
export { ClientError, type ClientErrorCode, isClientError } from "./errors.ts";
export type { CallOptions } from "./http/send.ts";
export type { ClientOptions, ConnectKey, PaymentKeys } from "./options.ts";
export {
  type LookupReceiver,
  type PaymentToReconcile,
  type ReconcileOptions,
  type ReconcileReport,
  type ReconcileResult,
  reconcile,
} from "./reconcile.ts";
export type { Checkout } from "./requests/checkout.ts";
export type { DirectPayment } from "./requests/direct-payment.ts";
export type { Currency } from "./requests/fields.ts";
export { MEDIUMS, type Medium } from "./requests/medium.ts";
export type { WebhookSettings } from "./requests/webhook-settings.ts";
export type { Withdrawal } from "./requests/withdrawal.ts";
export type { Transaction, TransactionDetails, TransactionStatus } from "./transaction.ts";
export { type OpenPayment, type Watch, type WatchedReceiver, type WatchOptions, watch } from "./watch.ts";
