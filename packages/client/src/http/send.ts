import { type Clock, sleep } from "../clock.ts";
import { ClientError } from "../errors.ts";
import { attempt } from "./attempt.ts";
import { retryDelayMs } from "./backoff.ts";
import { callHeaders } from "./headers.ts";
import { type Call, type HttpAnswer, judge } from "./verdict.ts";

/** The options of one call. */
export interface CallOptions {
  /** Aborts the call. A payment, checkout or withdrawal under way then ends as `ERR_OUTCOME_UNKNOWN`. */
  readonly signal?: AbortSignal | undefined;
  /** The time limit of each attempt in milliseconds, including the reading of the answer. Default: the client's. */
  readonly timeoutMs?: number | undefined;
  /**
   * Further headers of this call, such as the one that names the connected merchant for whom it is made. Those that the
   * client sets itself are refused: `X-API-Key`, `Accept`, `Host`, `Content-…`, and those of the connection.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

const CALL_OPTIONS: ReadonlySet<string> = new Set<keyof CallOptions>(["signal", "timeoutMs", "headers"]);

/** The address, the credentials and the limits of all calls. */
export interface Transport {
  readonly baseUrl: string;
  /** The value of `X-API-Key`. */
  readonly key: string;
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly maxAnswerBytes: number;
}

/**
 * Makes a call, with as many attempts as it may have.
 *
 * @throws ClientError `ERR_OPTION_INVALID`, `ERR_HEADER_INVALID`, or a code about a call or an answer.
 * `ERR_OUTCOME_UNKNOWN` is only for calls that move money.
 */
export async function send(
  endpointCall: Call,
  transport: Transport,
  options: CallOptions = {},
): Promise<HttpAnswer> {
  const { clock, attempts } = transport;
  const { signal, timeoutMs = transport.timeoutMs } = options;
  checkTimeout(timeoutMs);
  // A misspelt `headers` would make a payment for another merchant.
  const unknownOption = Object.keys(options).find((name) => !CALL_OPTIONS.has(name));
  if (unknownOption !== undefined) {
    throw new ClientError("ERR_OPTION_INVALID", `${unknownOption} is not an option of a call.`, {
      fix: `The options are ${[...CALL_OPTIONS].join(", ")}.`,
      field: unknownOption,
    });
  }
  const custom = callHeaders(options.headers);
  const call = { ...endpointCall, secrets: [...endpointCall.secrets, ...custom.secrets] };
  const headers: Record<string, string> = {
    ...custom.headers,
    accept: "application/json",
    "X-API-Key": transport.key,
  };
  if (call.body !== undefined) headers["content-type"] = "application/json";
  const request = { method: call.method, url: transport.baseUrl + call.path, headers, body: call.body };
  for (let attemptNumber = 1; ; attemptNumber++) {
    if (signal?.aborted === true) throw abortedError(call, signal.reason);
    const verdict = judge(call, await attempt(request, { ...transport, timeoutMs, signal }), clock.now());
    if ("answer" in verdict) return verdict.answer;
    const { error, isRetryable } = verdict;
    const delayMs =
      isRetryable && attemptNumber < attempts ? retryDelayMs(attemptNumber, error.retryAfterMs) : null;
    if (delayMs === null) throw error;
    await sleep(clock, delayMs, signal);
  }
}

/** The error of an abort while no attempt is under way. */
function abortedError({ method, path }: Call, cause: unknown): ClientError {
  return new ClientError(
    "ERR_ABORTED",
    `${method} ${path}: the signal aborted the call between two attempts or before.`,
    {
      fix: "Call again when it is wanted.",
      cause,
    },
  );
}

/** The longest delay of a platform timer. */
const MAX_TIMEOUT_MS = 2_147_483_647;

export function checkTimeout(timeoutMs: unknown): void {
  if (typeof timeoutMs === "number" && timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS) return;
  throw new ClientError("ERR_OPTION_INVALID", `timeoutMs is ${String(timeoutMs)}.`, {
    fix: "Give milliseconds, from 1 to 2,147,483,647.",
    field: "timeoutMs",
  });
}
