import type { DeliveryErrorCode } from "./errors.ts";

/** The parts of a request that can be judged before its body is read. */
export interface DeliveryHead {
  readonly method: string;
  /** With the methods of `Headers` and `Map`. `keys` is used for a hint: which other header may have the signature. */
  readonly headers: { get(name: string): string | null | undefined; keys?(): Iterable<string> };
  /** Path and query as received. */
  readonly url?: string;
}

/** One request as an adapter hands it over: exact bytes, nothing decoded. */
export interface Delivery extends DeliveryHead {
  /** Path and query as received. They are used in notices only, and do not choose the flow. */
  readonly url: string;
  /** The body's bytes exactly as they arrived. */
  readonly rawBody: Uint8Array;
  /** The sender's address, as far as the framework knows it. */
  readonly remoteAddress?: string | undefined;
  /** The adapter's `tenant` option for this request, which is a hint for the resolver. */
  readonly tenant?: string | undefined;
  /** Keeps a serverless platform alive until the promise settles (`run: "after-response"`). */
  readonly waitUntil?: ((work: Promise<unknown>) => void) | undefined;
}

/** The answer, to be sent unchanged. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

/** The only 2xx answer. */
export const RECEIVED_REPLY: Reply = Object.freeze({
  status: 200,
  headers: Object.freeze({ ...JSON_HEADERS }),
  body: '{"received":true}',
});

/** After how many seconds a sender may try again. Senders also back off by themselves. */
const RETRY_AFTER_SECONDS = "5";

/** How long the rest of a refused body is read and discarded. */
export const LINGER_MS = 2_000;

/** An answer that is not 2xx. It has the code and nothing more. */
export function refusalReply(code: DeliveryErrorCode, status: number): Reply {
  const headers: Record<string, string> = { ...JSON_HEADERS };
  if (status === 405) headers.allow = "POST";
  if (status === 503) headers["retry-after"] = RETRY_AFTER_SECONDS;
  // The body was not read completely, so the connection cannot be used for another request.
  if (status === 413 || status === 408) headers.connection = "close";
  // The next request on this connection would get the same answer. On a new connection, it may reach another process.
  if (code === "ERR_CLOSING") headers.connection = "close";
  return { status, headers, body: JSON.stringify({ error: { code } }) };
}

/** Adds a header to an answer, after which the connection is closed. */
export function closingReply({ status, headers, body }: Reply): Reply {
  return { status, headers: { ...headers, connection: "close" }, body };
}

/** One JSON type. A comma means that the header was repeated, so it is not known which value is true. */
const JSON_TYPE_PATTERN = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json[\t ]*(?:;[^,]*)?$/i;

/** Describes the fault of a request that does not depend on its body (docs/reference/outcomes.md); null if there is none. */
export function findHeadFault(
  { method, headers }: DeliveryHead,
  maxBodyBytes: number,
  takesAnyType: boolean = false,
): DeliveryErrorCode | null {
  if (method !== "POST") return "ERR_METHOD_NOT_ALLOWED";
  if (!takesAnyType && !JSON_TYPE_PATTERN.test(headers.get("content-type") ?? "")) return "ERR_CONTENT_TYPE";
  const encoding = headers.get("content-encoding") ?? "";
  if (encoding !== "" && encoding.toLowerCase() !== "identity") return "ERR_CONTENT_ENCODING";
  if (Number(headers.get("content-length") ?? 0) > maxBodyBytes) return "ERR_BODY_TOO_LARGE";
  return null;
}
