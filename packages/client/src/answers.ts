import type { HttpAnswer } from "./http/verdict.ts";
import { findMember, isObject, isText, type JsonObject, type JsonValue } from "./json.ts";

/**
 * An answer whose body the specification does not show. It has the members that are usual in this service, and the
 * whole body as it arrived.
 */
export interface Answer {
  /** The HTTP status, 2xx. */
  readonly httpStatus: number;
  /** The member `data`, if there is one. */
  readonly data: JsonValue | undefined;
  /** The member `message` of the body or of `data`, if there is one. */
  readonly message: string | undefined;
  /** The body as the service wrote it: JSON or empty. Its numbers are exact. */
  readonly raw: string;
}

/** The answer to a direct payment or a withdrawal. It says that the service has the request, not how it will end. */
export interface PaymentAnswer extends Answer {
  /**
   * The transaction's id, if the answer has one under `transaction_id`, `transactionId`, `payTxnId` or `id`, or under
   * the names of the deployment (`names.api.transactionIdFields`), in `data` or outside it. The specification says that
   * the answer has an id, but not where. A look-up by reference is certain.
   */
  readonly transactionId: string | undefined;
}

/** The answer to a checkout session. */
export interface CheckoutAnswer extends PaymentAnswer {
  /**
   * The URL to send the customer to, if the answer has an http(s) URL under `checkout_url`, `checkoutUrl`,
   * `payment_url`, `redirect_url` or `url`, in `data` or outside it. The specification does not show it.
   */
  readonly checkoutUrl: string | undefined;
}

/** The answer to a call about webhook settings. The specification shows neither its form nor its fields. */
export interface WebhookSettingsAnswer extends Answer {
  readonly webhook_url: string | undefined;
  /** The secret, if the service sends it. Keep it, and `raw`, out of logs. */
  readonly webhook_secret: string | undefined;
  readonly webhook_enabled: boolean | undefined;
}

function readAnswer({ httpStatus, json, text }: HttpAnswer): Answer {
  const body: JsonObject = isObject(json) ? json : {};
  return { httpStatus, data: body.data, message: findMember(json, ["message"], isText), raw: text };
}

/** The members that may hold the id of a transaction, if the client has no names. */
export const ID_FIELDS: readonly string[] = ["transaction_id", "transactionId", "payTxnId", "id"];

export function readPaymentAnswer(answer: HttpAnswer, idFields: readonly string[]): PaymentAnswer {
  return { ...readAnswer(answer), transactionId: findMember(answer.json, idFields, isText) };
}

export function readCheckoutAnswer(answer: HttpAnswer, idFields: readonly string[]): CheckoutAnswer {
  const names = ["checkout_url", "checkoutUrl", "payment_url", "redirect_url", "url"];
  return {
    ...readPaymentAnswer(answer, idFields),
    checkoutUrl: findMember(answer.json, names, isWebAddress),
  };
}

export function readWebhookSettings(answer: HttpAnswer): WebhookSettingsAnswer {
  return {
    ...readAnswer(answer),
    webhook_url: findMember(answer.json, ["webhook_url"], isText),
    webhook_secret: findMember(answer.json, ["webhook_secret"], isText),
    webhook_enabled: findMember(answer.json, ["webhook_enabled"], (value) => typeof value === "boolean"),
  };
}

function isWebAddress(value: JsonValue | undefined): value is string {
  return typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value);
}
