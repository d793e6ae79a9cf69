import { errorWithoutData } from "./foreign-error.ts";
import { isError, propertyOf } from "./foreign-value.ts";

/**
 * Every code that Payhooks can throw or answer with. The union is closed: a `switch` over `error.code` narrows, and
 * `docs/reference/errors.md` has a heading for each code.
 */
export type ErrorCode = DeliveryErrorCode | VerificationErrorCode | SetupErrorCode | UsageErrorCode;

/** Codes that a delivery is answered with, in the body `{"error":{"code":"ERR_…"}}`. */
export type DeliveryErrorCode =
  | "ERR_METHOD_NOT_ALLOWED"
  | "ERR_CONTENT_TYPE"
  | "ERR_CONTENT_ENCODING"
  | "ERR_BODY_TOO_LARGE"
  | "ERR_BODY_TIMEOUT"
  | "ERR_BODY_INCOMPLETE"
  | "ERR_BODY_NOT_JSON"
  | "ERR_BODY_CONSUMED"
  | "ERR_SIGNATURE_MISSING"
  | "ERR_SIGNATURE_MALFORMED"
  | "ERR_SIGNATURE_INVALID"
  | "ERR_TIMESTAMP_EXPIRED"
  | "ERR_TIMESTAMP_FUTURE"
  | "ERR_ACCEPT_TIMEOUT"
  | "ERR_RESOLVER_FAILED"
  | "ERR_INBOX_UNAVAILABLE"
  | "ERR_INBOX_FULL"
  | "ERR_HELD_FULL"
  | "ERR_OVERLOADED"
  | "ERR_CLOSING"
  | "ERR_NOT_STARTED"
  | "ERR_NOT_HANDLED"
  | "ERR_HELD"
  | "ERR_UNAUTHORIZED"
  | "ERR_MISCONFIGURED";

/** Further codes of {@link verifyPaymentCallback} and {@link verifyConnectWebhook}. */
export type VerificationErrorCode =
  | "ERR_EVENT_MALFORMED"
  | "ERR_EVENT_AMBIGUOUS"
  | "ERR_EVENT_UNEXPECTED"
  | "ERR_EVENT_UNRECOGNIZED";

/** Codes of a wrong configuration. They are thrown at construction, at mounting or at the start. */
export type SetupErrorCode =
  | "ERR_OPTION_INVALID"
  | "ERR_OPTION_MISSING"
  | "ERR_NAMES_INVALID"
  | "ERR_FLOW_OFF"
  | "ERR_KEY_UNREADABLE"
  | "ERR_KEY_PRIVATE"
  | "ERR_KEY_NOT_RSA"
  | "ERR_KEY_TOO_SHORT"
  | "ERR_KEY_TOO_LONG"
  | "ERR_KEY_EXPONENT"
  | "ERR_KEY_COUNT"
  | "ERR_SECRET_BLANK"
  | "ERR_SECRET_PLACEHOLDER"
  | "ERR_SECRET_QUOTED"
  | "ERR_SECRET_WHITESPACE"
  | "ERR_SECRET_KIND"
  | "ERR_PEER_MISSING"
  | "ERR_MYSQL_UNSUITABLE"
  | "ERR_POSTGRES_UNSUITABLE"
  | "ERR_REDIS_UNSUITABLE"
  | "ERR_SQLITE_UNSUITABLE"
  | "ERR_EFFECTS_UNSUITABLE"
  | "ERR_INBOX_REQUIRED"
  | "ERR_INBOX_UNUSED"
  | "ERR_INBOX_IN_USE"
  | "ERR_NO_HANDLERS"
  | "ERR_HANDLER_NAME"
  | "ERR_HANDLER_DUPLICATE"
  | "ERR_REGISTRATION_CLOSED"
  | "ERR_SOURCE_NAME"
  | "ERR_SOURCE_UNKNOWN";

/** Codes of calls that a program makes on a running receiver. */
export type UsageErrorCode =
  | "ERR_AMOUNT_INVALID"
  | "ERR_TRANSACTION_INVALID"
  | "ERR_TRANSACTION_FOREIGN"
  | "ERR_EVENT_NOT_FOUND"
  | "ERR_EVENT_CHANGED"
  | "ERR_NOT_DECIDABLE"
  | "ERR_NOT_SEARCHABLE"
  | "ERR_SEAL_KEY_MISSING"
  | "ERR_SEAL_BROKEN"
  | "ERR_EFFECTS_OFF"
  | "ERR_EFFECT_NAME"
  | "ERR_EFFECT_REUSED"
  | "ERR_EFFECT_NESTED"
  | "ERR_EFFECT_TRANSACTION"
  | "ERR_EFFECT_ENDED"
  | "ERR_EFFECTS_UNAVAILABLE"
  | "ERR_EFFECT_ASYNC"
  | "ERR_EFFECT_FORGOTTEN";

/** The HTTP status that each delivery code is answered with, unless the flow says otherwise (signatures). */
export const ANSWER_STATUS: Readonly<Record<DeliveryErrorCode, number>> = {
  ERR_METHOD_NOT_ALLOWED: 405,
  ERR_CONTENT_TYPE: 415,
  ERR_CONTENT_ENCODING: 415,
  ERR_BODY_TOO_LARGE: 413,
  ERR_BODY_TIMEOUT: 408,
  ERR_BODY_INCOMPLETE: 400,
  ERR_BODY_NOT_JSON: 400,
  ERR_BODY_CONSUMED: 500,
  ERR_SIGNATURE_MISSING: 401,
  ERR_SIGNATURE_MALFORMED: 401,
  ERR_SIGNATURE_INVALID: 401,
  ERR_TIMESTAMP_EXPIRED: 400,
  ERR_TIMESTAMP_FUTURE: 400,
  ERR_ACCEPT_TIMEOUT: 503,
  ERR_RESOLVER_FAILED: 503,
  ERR_INBOX_UNAVAILABLE: 503,
  ERR_INBOX_FULL: 503,
  ERR_HELD_FULL: 503,
  ERR_OVERLOADED: 503,
  ERR_CLOSING: 503,
  ERR_NOT_STARTED: 503,
  ERR_NOT_HANDLED: 503,
  ERR_HELD: 503,
  ERR_UNAUTHORIZED: 401,
  ERR_MISCONFIGURED: 500,
};

/** The members of an error besides its code and message. */
export interface ErrorDetail {
  /** How to fix it, in words. */
  readonly fix?: string | undefined;
  /** The HTTP status, if the error is the answer to a delivery. */
  readonly status?: number | undefined;
  /** The error that caused it. Only its kind, code and stack frames are kept, and none of its words or fields. */
  readonly cause?: unknown;
}

/**
 * The only error class of Payhooks. `message` says what happened, and ends with the fix. It never has a secret, a signature or
 * a whole body in it. `code` is one of the closed union {@link ErrorCode}. `cause` is a copy of the error of a driver or the
 * platform, without the data that it was given.
 */
export class PayhooksError extends Error {
  readonly code: ErrorCode;
  /** How to fix it, in words; empty when there is nothing to do. */
  readonly fix: string;
  /** The HTTP status of the answer, when the error is the answer to a delivery. */
  declare readonly status: number | undefined;

  constructor(code: ErrorCode, problem: string, detail: ErrorDetail = {}) {
    super(
      detail.fix === undefined ? problem : `${problem} ${detail.fix}`,
      detail.cause === undefined ? undefined : { cause: errorWithoutData(detail.cause) },
    );
    this.name = "PayhooksError";
    this.code = code;
    this.fix = detail.fix ?? "";
    const status = detail.status ?? (ANSWER_STATUS as Readonly<Record<string, number | undefined>>)[code];
    // An error that is not an answer does not print as one with "status: undefined".
    if (status !== undefined) this.status = status;
  }
}

/** The error for an option that cannot be right, and how to fix it. */
export function invalidOptionError(problem: string, fix: string): PayhooksError {
  return new PayhooksError("ERR_OPTION_INVALID", problem, { fix });
}

/** True for an error that the merchant has to correct. Neither time nor another delivery does. */
export function isSetupError(error: unknown): boolean {
  return isPayhooksError(error) && !Object.hasOwn(ANSWER_STATUS, error.code);
}

/** True for an error of Payhooks, even of another copy of the package in the same process. */
export function isPayhooksError(error: unknown): error is PayhooksError {
  return (
    isError(error) &&
    propertyOf(error, "name") === "PayhooksError" &&
    typeof propertyOf(error, "code") === "string"
  );
}

/** True if a search failed because the inbox would have to read everything that it keeps. */
export function isNotSearchable(error: unknown): boolean {
  return isPayhooksError(error) && error.code === "ERR_NOT_SEARCHABLE";
}
