/**
 * Every code that the client throws. The list is closed: a `switch` over `error.code` narrows, and the table in
 * `docs/reference/client.md` has a row for each.
 */
export const CLIENT_ERROR_CODES = [
  // A wrong configuration.
  "ERR_OPTION_MISSING",
  "ERR_OPTION_INVALID",
  // A request that the service would refuse, or that would do harm. Nothing was sent.
  "ERR_FIELD_MISSING",
  "ERR_FIELD_UNKNOWN",
  "ERR_FIELD_INVALID",
  "ERR_AMOUNT_INVALID",
  "ERR_CURRENCY_INVALID",
  "ERR_MEDIUM_INVALID",
  "ERR_PHONE_NUMBER_INVALID",
  "ERR_REFERENCE_INVALID",
  "ERR_CALLBACK_URL_INVALID",
  "ERR_REDIRECTS_INVALID",
  // A call that brought no usable answer.
  "ERR_ABORTED",
  "ERR_UNREACHABLE",
  "ERR_CONNECTION_LOST",
  "ERR_TIMEOUT",
  "ERR_OUTCOME_UNKNOWN",
  // An answer that is an error, or that cannot be used.
  "ERR_BAD_REQUEST",
  "ERR_UNAUTHORIZED",
  "ERR_RATE_LIMITED",
  "ERR_REFUSED",
  "ERR_SERVER",
  "ERR_REDIRECTED",
  "ERR_ANSWER_TOO_LARGE",
  "ERR_ANSWER_NOT_JSON",
  "ERR_ANSWER_UNREADABLE",
  "ERR_ANSWER_MISMATCH",
  // The service has not decided yet about what confirmWithLookup was asked.
  "ERR_NOT_SETTLED",
] as const;

/** A code of {@link ClientError}. */
export type ClientErrorCode = (typeof CLIENT_ERROR_CODES)[number];

/** What an error carries beside its code and message. */
export interface ClientErrorDetail {
  readonly fix: string;
  readonly cause?: unknown;
  readonly httpStatus?: number | undefined;
  readonly body?: unknown;
  readonly field?: string | undefined;
  readonly reference?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/**
 * The one error class of the client. `message` says what happened, never with a key, a phone number or a whole body,
 * and ends with the fix.
 */
export class ClientError extends Error {
  readonly code: ClientErrorCode;
  /** What to do about it, in words. */
  readonly fix: string;
  /** The HTTP status, where an answer came. */
  readonly httpStatus: number | undefined;
  /**
   * The body of an error answer: JSON where it is JSON of at most 64 KiB, else its first 2,000 characters. Own secrets are
   * blotted out, however they are spelt.
   */
  readonly body: unknown;
  /** The request field or option that is wrong. */
  readonly field: string | undefined;
  /** The reference to look up, for `ERR_OUTCOME_UNKNOWN`. */
  readonly reference: string | undefined;
  /** What the service's `Retry-After` asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ClientErrorCode, what: string, detail: ClientErrorDetail) {
    super(`${what} ${detail.fix}`, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.name = "ClientError";
    this.code = code;
    this.fix = detail.fix;
    this.httpStatus = detail.httpStatus;
    this.body = detail.body;
    this.field = detail.field;
    this.reference = detail.reference;
    this.retryAfterMs = detail.retryAfterMs;
  }
}

/** True for an error of the client, also of another copy of the package in the same process. */
export function isClientError(error: unknown): error is ClientError {
  return (
    error instanceof Error &&
    error.name === "ClientError" &&
    typeof (error as { code?: unknown }).code === "string"
  );
}
