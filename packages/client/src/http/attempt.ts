import type { Clock } from "../clock.ts";
import { isProvenUnsent } from "./unsent.ts";

/** An HTTP request. It can be sent any number of times. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** The result of one attempt. */
export type Attempt =
  | {
      readonly kind: "answered";
      readonly httpStatus: number;
      readonly retryAfter: string | null;
      /** The whole body as text, or the reason why there is none. */
      readonly body: { readonly text: string } | { readonly failure: BodyFailure; readonly cause?: unknown };
    }
  | {
      readonly kind: "failed";
      /** `unreachable` means that no byte of the request was sent. For all others, that is not known. */
      readonly why: "unreachable" | "lost" | "timeout" | "aborted";
      readonly cause: unknown;
    };

export type BodyFailure = "too-large" | "not-text" | "lost" | "timeout" | "aborted";

/** The parts of an attempt besides the request. */
export interface AttemptOptions {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  /** The time limit for the whole attempt, including the reading of the body. */
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** Sends a request once, and reads the whole answer. It never rejects. The signal must not be aborted yet. */
export async function attempt(request: HttpRequest, options: AttemptOptions): Promise<Attempt> {
  const { clock, timeoutMs, maxAnswerBytes, signal } = options;
  const abort = new AbortController();
  let stopReason: "timeout" | "aborted" | null = null;
  const stop = (why: "timeout" | "aborted", reason: unknown): void => {
    stopReason ??= why;
    abort.abort(reason);
  };
  const onAbort = (): void => stop("aborted", signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const cancelTimeout = clock.after(timeoutMs, () =>
    stop("timeout", new Error(`No complete answer within ${timeoutMs} ms.`)),
  );
  // If a fetch ignores its signal, we must not wait for ever.
  const whenStopped = new Promise<never>((_, reject) => {
    abort.signal.addEventListener("abort", () => reject(abort.signal.reason), { once: true });
  });
  whenStopped.catch(() => {});
  try {
    const response = await Promise.race([send(request, options.fetch, abort.signal), whenStopped]);
    const retryAfter = response.headers.get("retry-after");
    try {
      const body = await Promise.race([readBody(response, maxAnswerBytes), whenStopped]);
      return { kind: "answered", httpStatus: response.status, retryAfter, body };
    } catch (cause) {
      return {
        kind: "answered",
        httpStatus: response.status,
        retryAfter,
        body: { failure: stopReason ?? "lost", cause },
      };
    }
  } catch (cause) {
    if (stopReason !== null) return { kind: "failed", why: stopReason, cause };
    return { kind: "failed", why: isProvenUnsent(cause) ? "unreachable" : "lost", cause };
  } finally {
    cancelTimeout();
    signal?.removeEventListener("abort", onAbort);
  }
}

async function send(
  { method, url, headers, body }: HttpRequest,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal,
): Promise<Response> {
  const init = {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    signal,
    // The key must never travel to another address.
    redirect: "manual",
    // Frameworks that wrap fetch may cache answers. A cached look-up would be out of date.
    cache: "no-store",
  } as const;
  return fetch(url, init);
}

async function readBody(
  response: Response,
  maxBytes: number,
): Promise<{ readonly text: string } | { readonly failure: BodyFailure }> {
  if (response.body === null) return { text: "" };
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > maxBytes) {
      await reader.cancel().catch(() => {});
      return { failure: "too-large" };
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { failure: "not-text" };
  }
}
