import {
  type CheckoutAnswer,
  type PaymentAnswer,
  readCheckoutAnswer,
  readPaymentAnswer,
  readWebhookSettings,
  type WebhookSettingsAnswer,
} from "./answers.ts";
import { ClientError } from "./errors.ts";
import { type CallOptions, send } from "./http/send.ts";
import type { Call, HttpAnswer } from "./http/verdict.ts";
import {
  type ClientOptions,
  type ConnectKey,
  type PaymentKeys,
  type Settings,
  settingsOf,
} from "./options.ts";
import { type Checkout, checkoutRequest } from "./requests/checkout.ts";
import { type DirectPayment, directPaymentRequest } from "./requests/direct-payment.ts";
import type { Medium } from "./requests/medium.ts";
import { checkPathText } from "./requests/reference.ts";
import type { CheckedRequest } from "./requests/rules.ts";
import { type WebhookSettings, webhookSettingsBody } from "./requests/webhook-settings.ts";
import { type Withdrawal, withdrawalRequest } from "./requests/withdrawal.ts";
import { isNotFound, readTransaction, type Transaction } from "./transaction.ts";

/**
 * The payment endpoints. Every method rejects with a {@link ClientError}. A wrong request is refused before anything is
 * sent. `ERR_OUTCOME_UNKNOWN` means that a payment, withdrawal or checkout may or may not have been carried out.
 */
export interface PaymentsClient<M extends string = Medium> {
  /** `POST /api/v2/payment/direct`. A callback or a look-up has the result. The request is never sent twice. */
  pay(payment: DirectPayment<M>, options?: CallOptions): Promise<PaymentAnswer>;
  /** `POST /api/v2/payment/withdrawal`. A callback or a look-up has the result. The request is never sent twice. */
  withdraw(withdrawal: Withdrawal<M>, options?: CallOptions): Promise<PaymentAnswer>;
  /** `POST /api/v2/payment/checkout`. The request is never sent twice. */
  checkout(checkout: Checkout<M>, options?: CallOptions): Promise<CheckoutAnswer>;
  /** `GET /api/v2/payment/transaction/{id}`. Null if there is no such transaction. Failed attempts are repeated. */
  transactionById(id: string, options?: CallOptions): Promise<Transaction | null>;
  /**
   * `GET /api/v2/payment/transaction/ref/{reference}`. Null if there is no such transaction. Failed attempts are repeated.
   */
  transactionByReference(reference: string, options?: CallOptions): Promise<Transaction | null>;
}

/** The connected-account endpoints. Every method rejects with a {@link ClientError}. */
export interface ConnectClient {
  /** `GET /api/v2/connect/connected-accounts/webhook-settings`. Failed attempts are repeated. */
  webhookSettings(options?: CallOptions): Promise<WebhookSettingsAnswer>;
  /** `PUT /api/v2/connect/connected-accounts/webhook-settings`. Failed attempts are repeated, since this is idempotent. */
  setWebhookSettings(settings: WebhookSettings, options?: CallOptions): Promise<WebhookSettingsAnswer>;
}

/**
 * Makes a client, without I/O. Pass `publicKey` and `secretKey` for all endpoints, `apiKey` for the connected-account endpoints
 * alone, or all three if those have a key of their own.
 *
 * If the options name no key at all, this throws. If a key that they name, or `baseUrl`, is undefined or empty, the first call
 * that needs it rejects with `ERR_OPTION_MISSING`.
 *
 * @typeParam M the mediums that requests may name. With `allowUnknownMedium`, it may name more than the listed ones.
 * @throws ClientError `ERR_OPTION_INVALID` if an option has a wrong value; `ERR_OPTION_MISSING` if no key is named.
 * @example
 * const client = createClient({
 *   baseUrl: process.env.PAY_BASE_URL,
 *   publicKey: process.env.PAY_API_PUBLIC_KEY,
 *   secretKey: process.env.PAY_API_SECRET_KEY,
 * });
 * const transaction = await client.transactionByReference("order-1");
 */
export function createClient<M extends string = Medium>(
  options: ClientOptions & PaymentKeys & Partial<ConnectKey>,
): PaymentsClient<M> & ConnectClient;
export function createClient(options: ClientOptions & ConnectKey): ConnectClient;
export function createClient(
  options: ClientOptions & Partial<PaymentKeys & ConnectKey>,
): Partial<PaymentsClient<string> & ConnectClient> {
  const settings = settingsOf(options);
  const withPayments = "publicKey" in options || "secretKey" in options;
  const withConnect = "apiKey" in options || withPayments;
  if (!withConnect) {
    throw new ClientError("ERR_OPTION_MISSING", "createClient was given no key.", {
      fix: "Pass publicKey and secretKey, or apiKey for connected accounts, or all three.",
    });
  }
  return Object.freeze({
    ...(withPayments ? paymentsClient(settings) : {}),
    ...connectClient(settings),
  });
}

const PAYMENT_PATH = "/api/v2/payment";

function paymentsClient({ rules, names, secrets, payments }: Settings): PaymentsClient<string> {
  async function post<T>(
    path: string,
    { body, reference }: CheckedRequest,
    read: (answer: HttpAnswer, idFields: readonly string[]) => T,
    options: CallOptions | undefined,
  ): Promise<T> {
    const call: Call = {
      method: "POST",
      path: PAYMENT_PATH + path,
      body,
      reference,
      secrets,
      idFields: names.idFields,
    };
    return read(await send(call, payments(), options), names.idFields);
  }

  async function lookUp(
    field: "id" | "reference",
    value: string,
    path: string,
    options: CallOptions | undefined,
  ): Promise<Transaction | null> {
    const text = checkPathText(value, field, field === "id" ? "ERR_FIELD_INVALID" : "ERR_REFERENCE_INVALID");
    const call: Call = {
      method: "GET",
      path: PAYMENT_PATH + path + encodeURIComponent(text),
      secrets,
      idFields: names.idFields,
      isAnswer: isNotFound, // The specification does not show its HTTP status.
    };
    const callName = `GET ${call.path}`;
    const transaction = readTransaction(await send(call, payments(), options), callName);
    if (transaction === null || transaction[field] === text) return transaction;
    throw new ClientError("ERR_ANSWER_MISMATCH", `${callName}: the service answered with another ${field}.`, {
      fix: "Nothing is known about the one that was asked for: look at it by hand.",
    });
  }

  return {
    pay: async (payment, options) =>
      post("/direct", directPaymentRequest(payment, rules), readPaymentAnswer, options),
    withdraw: async (withdrawal, options) =>
      post("/withdrawal", withdrawalRequest(withdrawal, rules), readPaymentAnswer, options),
    checkout: async (checkout, options) =>
      post("/checkout", checkoutRequest(checkout, rules), readCheckoutAnswer, options),
    transactionById: (id, options) => lookUp("id", id, "/transaction/", options),
    transactionByReference: (reference, options) =>
      lookUp("reference", reference, "/transaction/ref/", options),
  };
}

function connectClient({ rules, names, secrets, connect }: Settings): ConnectClient {
  const path = `/api/v2/${names.pathSegment}/connected-accounts/webhook-settings`;
  const call = { path, secrets, idFields: names.idFields };
  return {
    async webhookSettings(options) {
      return readWebhookSettings(await send({ ...call, method: "GET" }, connect(), options));
    },
    async setWebhookSettings(settings, options) {
      const body = webhookSettingsBody(settings, rules);
      const put = { ...call, method: "PUT", body, secrets: [...secrets, settings.webhook_secret] } as const;
      return readWebhookSettings(await send(put, connect(), options));
    },
  };
}
