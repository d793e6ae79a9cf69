import { ClientError, type ClientErrorCode } from "../errors.ts";
import { type JsonValue, parseJson } from "../json.ts";
import type { Attempt, BodyFailure } from "./attempt.ts";
import { parseRetryAfter } from "./backoff.ts";
import { failureDetail, saysFailure } from "./failure-body.ts";
import { maskError } from "./secrets.ts";

/** A call to one endpoint. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT";
  /** The encoded path below the base URL. */
  readonly path: string;
  readonly body?: string | undefined;
  /**
   * The reference of the transaction, for calls that move money. Nothing says that the service recognises a repetition,
   * so such a call is sent again only if no byte of it was sent.
   */
  readonly reference?: string | undefined;
  /** The members of an answer that may hold the id of a transaction. */
  readonly idFields: readonly string[];
  /** Texts that must not appear in an error. */
  readonly secrets: readonly string[];
  /** Says whether the body of an error status is a proper answer all the same. */
  readonly isAnswer?: (json: JsonValue | undefined) => boolean;
}

/** A usable answer. */
export interface HttpAnswer {
  readonly httpStatus: number;
  /** The body as the service wrote it. Empty if there was none. */
  readonly text: string;
  /** Undefined if the body is empty. */
  readonly json: JsonValue | undefined;
}

export type Verdict =
  | { readonly answer: HttpAnswer }
  | { readonly error: ClientError; readonly isRetryable: boolean };

/** True for statuses that the service, or a proxy before it, may answer although the request was carried out. */
const leavesOutcomeOpen = (httpStatus: number): boolean =>
  httpStatus >= 500 ||
  httpStatus === 408 ||
  httpStatus < 200 ||
  (httpStatus >= 300 && httpStatus < 400 && !MOVED_STATUSES.has(httpStatus));

/** The redirections that only say that the request belongs elsewhere. Others may come after the work was done. */
const MOVED_STATUSES: ReadonlySet<number> = new Set([301, 307, 308]);

/** Decides from the result of one attempt how the call continues. */
export function judge(call: Call, attempt: Attempt, now: number): Verdict {
  const callName = `${call.method} ${call.path}`;
  const movesMoney = call.reference !== undefined;
  if (attempt.kind === "failed") {
    const { why } = attempt;
    // The reason for an abort comes from the caller, so it is passed on as it is.
    const cause = why === "aborted" ? attempt.cause : maskError(call.secrets, attempt.cause);
    if (why === "unreachable") {
      const fix =
        "Check baseUrl, the network and the service's certificate. Nothing was sent, so it is safe to call again.";
      return {
        error: new ClientError("ERR_UNREACHABLE", `${callName}: no connection could be made.`, {
          fix,
          cause,
        }),
        isRetryable: true,
      };
    }
    if (movesMoney) return unknownVerdict(call, FAILURES[why].text, { cause });
    return { error: callFailedError(callName, why, cause), isRetryable: why !== "aborted" };
  }
  const { httpStatus, body } = attempt;
  const text = "text" in body ? body.text : null;
  const json = text === null ? undefined : parseJson(text);
  const isSuccess = httpStatus >= 200 && httpStatus < 300;
  if (!isSuccess && call.isAnswer?.(json) !== true) {
    const retryAfterMs = parseRetryAfter(attempt.retryAfter, now);
    if (movesMoney && leavesOutcomeOpen(httpStatus)) {
      return unknownVerdict(call, `the service answered HTTP ${httpStatus}`, {
        httpStatus,
        text,
        retryAfterMs,
      });
    }
    const { code, means, fix } = describeStatus(httpStatus, movesMoney);
    const detail = { ...failureDetail(call.secrets, text), fix, httpStatus, retryAfterMs };
    return {
      error: new ClientError(code, `${callName}: HTTP ${httpStatus}, ${means}.`, detail),
      isRetryable: !movesMoney && (httpStatus >= 500 || httpStatus === 408 || httpStatus === 429),
    };
  }
  if ("failure" in body) {
    const { failure: why } = body;
    const cause = why === "aborted" ? body.cause : maskError(call.secrets, body.cause);
    if (movesMoney) return unknownVerdict(call, FAILURES[why].text, { httpStatus, cause });
    return {
      error: callFailedError(callName, why, cause, httpStatus),
      isRetryable: why === "lost" || why === "timeout",
    };
  }
  if (json === undefined && text !== null && text.trim() !== "") {
    if (movesMoney) return unknownVerdict(call, "the answer is not JSON", { httpStatus, text });
    const fix = "Check baseUrl: something other than the service may have answered.";
    const detail = { ...failureDetail(call.secrets, text), fix, httpStatus };
    return {
      error: new ClientError("ERR_ANSWER_NOT_JSON", `${callName}: the answer is not JSON.`, detail),
      isRetryable: false,
    };
  }
  if (isSuccess && saysFailure(json, call.idFields)) {
    const why = `HTTP ${httpStatus} with a body that says that the call failed`;
    if (movesMoney) return unknownVerdict(call, why, { httpStatus, text });
    const fix = "error.body, error.serviceCode and error.fields may say why.";
    const detail = { ...failureDetail(call.secrets, text), fix, httpStatus };
    return { error: new ClientError("ERR_REFUSED", `${callName}: ${why}.`, detail), isRetryable: false };
  }
  return { answer: { httpStatus, text: text ?? "", json } };
}

/** The error for a call that moves money if it is not known whether the call was carried out. */
function outcomeUnknownError(
  call: Call,
  reason: string,
  detail: {
    readonly cause?: unknown;
    readonly httpStatus?: number;
    /** The body of the answer as it arrived. */
    readonly text?: string | null;
    readonly retryAfterMs?: number | undefined;
  },
): ClientError {
  const { cause, httpStatus, text, retryAfterMs } = detail;
  const reference = JSON.stringify(call.reference);
  return new ClientError(
    "ERR_OUTCOME_UNKNOWN",
    `${call.method} ${call.path}: ${reason}, so it may or may not have been carried out.`,
    {
      ...failureDetail(call.secrets, text),
      cause,
      httpStatus,
      retryAfterMs,
      reference: call.reference,
      fix: `Do not send it again. Look it up with transactionByReference(${reference}), or wait for its callback; a null now does not prove that it will never arrive.`,
    },
  );
}

function unknownVerdict(call: Call, why: string, detail: Parameters<typeof outcomeUnknownError>[2]): Verdict {
  return { error: outcomeUnknownError(call, why, detail), isRetryable: false };
}

const FAILURES: Readonly<
  Record<"lost" | "timeout" | "aborted" | BodyFailure, { code: ClientErrorCode; text: string; fix: string }>
> = {
  lost: {
    code: "ERR_CONNECTION_LOST",
    text: "the connection broke before the whole answer was read",
    fix: "Call again.",
  },
  timeout: {
    code: "ERR_TIMEOUT",
    text: "no complete answer came within timeoutMs",
    fix: "Call again, or raise timeoutMs.",
  },
  aborted: { code: "ERR_ABORTED", text: "the signal aborted the call", fix: "Call again when it is wanted." },
  "too-large": {
    code: "ERR_ANSWER_TOO_LARGE",
    text: "the answer is larger than maxAnswerBytes",
    fix: "Check baseUrl, or raise maxAnswerBytes.",
  },
  "not-text": {
    code: "ERR_ANSWER_NOT_JSON",
    text: "the answer is not text in UTF-8",
    fix: "Check baseUrl: something other than the service may have answered.",
  },
};

function callFailedError(
  callName: string,
  why: keyof typeof FAILURES,
  cause: unknown,
  httpStatus?: number,
): ClientError {
  const { code, text, fix } = FAILURES[why];
  return new ClientError(code, `${callName}: ${text}.`, { fix, cause, httpStatus });
}

/** The meaning of an error status (specification, Errors). The specification does not show the bodies of errors. */
function describeStatus(
  httpStatus: number,
  movesMoney: boolean,
): { readonly code: ClientErrorCode; readonly means: string; readonly fix: string } {
  if (httpStatus === 400) {
    const fix = movesMoney
      ? "Correct the request; error.body may say what. A reference may be used once only."
      : "Correct the request; error.body may say what.";
    return { code: "ERR_BAD_REQUEST", means: "invalid request parameters", fix };
  }
  if (httpStatus === 401) {
    const fix = "Check the keys, and that they belong to this baseUrl.";
    return { code: "ERR_UNAUTHORIZED", means: "invalid or missing API key", fix };
  }
  if (httpStatus === 429) {
    return {
      code: "ERR_RATE_LIMITED",
      means: "too many requests",
      fix: "Call again after error.retryAfterMs.",
    };
  }
  if (httpStatus >= 500) {
    return { code: "ERR_SERVER", means: "an error of the service", fix: "Call again later." };
  }
  if (httpStatus >= 400) {
    return {
      code: "ERR_REFUSED",
      means: "the request was refused",
      fix: "Check baseUrl; error.body may say more.",
    };
  }
  return {
    code: "ERR_REDIRECTED",
    means: "a redirection, which is not followed since it could take the key elsewhere",
    fix: "Set baseUrl to the service's own address.",
  };
}
