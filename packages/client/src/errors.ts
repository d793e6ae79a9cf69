/**
 * All codes that the client throws. The list is closed, so TypeScript can check that a `switch` over `error.code`
 * covers all of them. `docs/reference/client.md` explains each.
 */
export const CLIENT_ERROR_CODES = [
  // The configuration is wrong.
  "ERR_OPTION_MISSING",
  "ERR_OPTION_INVALID",
  // The service would refuse the request, or the request would do harm. Nothing was sent.
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
  "ERR_HEADER_INVALID",
  // The call got no usable answer.
  "ERR_ABORTED",
  "ERR_UNREACHABLE",
  "ERR_CONNECTION_LOST",
  "ERR_TIMEOUT",
  "ERR_OUTCOME_UNKNOWN",
  // The answer is an error, or it cannot be used.
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
  // Look-ups of a round of `watch` failed.
  "ERR_LOOKUP_FAILED",
] as const;

/** A code of {@link ClientError}. */
export type ClientErrorCode = (typeof CLIENT_ERROR_CODES)[number];

/** The members of an error besides its code and message. */
export interface ClientErrorDetail {
  readonly fix: string;
  readonly cause?: unknown;
  readonly httpStatus?: number | undefined;
  readonly body?: unknown;
  readonly serviceCode?: string | undefined;
  readonly requestId?: string | undefined;
  readonly fields?: Readonly<Record<string, string>> | undefined;
  readonly field?: string | undefined;
  readonly reference?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/**
 * The only error class of the client. `message` says what happened, and ends with the fix. It never contains a key, a
 * phone number or a whole body.
 */
export class ClientError extends Error {
  readonly code: ClientErrorCode;
  /** How to fix it, in words. */
  readonly fix: string;
  /** The HTTP status, if there was an answer. */
  readonly httpStatus: number | undefined;
  /**
   * The body of an error answer. If it is JSON of at most 64 KiB, it is parsed; otherwise this is its first 2,000
   * characters. The client's own secrets are replaced, however they are written.
   */
  readonly body: unknown;
  /**
   * The service's own code of the failure, if the body has one: `error_code` or `code`, outside or in `error`. The
   * specification lists none.
   */
  readonly serviceCode: string | undefined;
  /** The `request_id` of the body, if it has one. Name it when you ask the service. */
  readonly requestId: string | undefined;
  /** The body's remark about each request field, by the field's name. */
  readonly fields: Readonly<Record<string, string>> | undefined;
  /** The request field, header or option that is wrong. */
  readonly field: string | undefined;
  /** The reference to look up, for `ERR_OUTCOME_UNKNOWN`. */
  readonly reference: string | undefined;
  /** How long to wait according to the service's `Retry-After`, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ClientErrorCode, problem: string, detail: ClientErrorDetail) {
    super(`${problem} ${detail.fix}`, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.name = "ClientError";
    this.code = code;
    this.fix = detail.fix;
    this.httpStatus = detail.httpStatus;
    this.body = detail.body;
    this.serviceCode = detail.serviceCode;
    this.requestId = detail.requestId;
    this.fields = detail.fields;
    this.field = detail.field;
    this.reference = detail.reference;
    this.retryAfterMs = detail.retryAfterMs;
  }
}

/** True if an error is a {@link ClientError}, even of another copy of this package in the same process. */
export function isClientError(error: unknown): error is ClientError {
  try {
    return (
      error instanceof Error &&
      error.name === "ClientError" &&
      typeof (error as { code?: unknown }).code === "string"
    );
  } catch {
    // An object that throws when it is read is not an error of ours.
    return false;
  }
}
