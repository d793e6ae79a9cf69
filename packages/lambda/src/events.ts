import type { Reply } from "@payhooks/core";

type Texts = Readonly<Record<string, string | undefined>>;
type Lists = Readonly<Record<string, readonly string[] | undefined>>;

/**
 * A request as Lambda gets it: from API Gateway in payload format 1.0 or 2.0, from a function URL (which is format
 * 2.0), or from a load balancer, with or without multi-value headers.
 */
export interface HttpEvent {
  readonly headers?: Texts | null | undefined;
  readonly multiValueHeaders?: Lists | null | undefined;
  readonly body?: string | null | undefined;
  readonly isBase64Encoded?: boolean | undefined;
  /** Format 1.0 and load balancers. */
  readonly httpMethod?: string | undefined;
  readonly path?: string | undefined;
  readonly queryStringParameters?: Texts | null | undefined;
  readonly multiValueQueryStringParameters?: Lists | null | undefined;
  /** Format 2.0. */
  readonly rawPath?: string | undefined;
  readonly rawQueryString?: string | undefined;
  readonly requestContext?:
    | {
        readonly http?: { readonly method: string; readonly sourceIp: string } | undefined;
        readonly identity?: { readonly sourceIp?: string | undefined } | undefined;
        readonly elb?: object | undefined;
      }
    | undefined;
}

/** An answer as Lambda returns it. */
export interface HttpResult {
  readonly statusCode: number;
  readonly headers?: Record<string, string>;
  /** In place of `headers`, for a load balancer with multi-value headers. */
  readonly multiValueHeaders?: Record<string, string[]>;
  readonly body: string;
  readonly isBase64Encoded: false;
}

export function methodOf({ httpMethod, requestContext }: HttpEvent): string {
  return requestContext?.http?.method ?? httpMethod ?? "";
}

/** Path and query. API Gateway decodes the query in format 1.0. A load balancer leaves it as it was sent. */
export function urlOf(event: HttpEvent): string {
  const { rawPath, rawQueryString = "", path = "", requestContext } = event;
  if (rawPath !== undefined) return rawQueryString === "" ? rawPath : `${rawPath}?${rawQueryString}`;
  const encode = requestContext?.elb === undefined ? encodeURIComponent : (text: string) => text;
  const query = Object.entries(event.multiValueQueryStringParameters ?? event.queryStringParameters ?? {})
    .flatMap(([name, values]) => [values ?? []].flat().map((value) => `${encode(name)}=${encode(value)}`))
    .join("&");
  return query === "" ? path : `${path}?${query}`;
}

/** A header by its name in lower case, its values joined. */
export function headerOf({ headers, multiValueHeaders }: HttpEvent, name: string): string | undefined {
  const fieldValues = Object.entries(multiValueHeaders ?? headers ?? {}).flatMap(([other, values]) =>
    other.toLowerCase() === name ? (values ?? []) : [],
  );
  return fieldValues.length === 0 ? undefined : fieldValues.join(", ").trim();
}

/** The peer of the gateway. A load balancer puts it at the end of `x-forwarded-for`. */
export function peerOf(event: HttpEvent): string | undefined {
  const { http, identity, elb } = event.requestContext ?? {};
  if (elb !== undefined) return headerOf(event, "x-forwarded-for")?.split(",").at(-1)?.trim();
  return http?.sourceIp ?? identity?.sourceIp;
}

/** The fault of a body that cannot be used. */
type BodyFault = { readonly code: "ERR_BODY_TOO_LARGE" | "ERR_BODY_CONSUMED"; readonly why: string };

/**
 * The bytes of the body. A body that came as text has lost what was no UTF-8. Its length shows this if the event has
 * it; if not, the signature does.
 */
export function bodyOf(event: HttpEvent, maxBodyBytes: number): Uint8Array | BodyFault {
  const bytes = Buffer.from(event.body ?? "", event.isBase64Encoded === true ? "base64" : "utf8");
  if (bytes.byteLength > maxBodyBytes) {
    return { code: "ERR_BODY_TOO_LARGE", why: `the body has more than ${maxBodyBytes} bytes` };
  }
  const length = headerOf(event, "content-length");
  if (length === undefined || length === String(bytes.byteLength)) return bytes;
  return {
    code: "ERR_BODY_CONSUMED",
    why: `the body is not as long as its content-length, because the gateway has made text of it: have it hand over base64, in API Gateway by the binary media type */*`,
  };
}

/** The answer. `connection` is a matter between the gateway and the sender. */
export function resultOf({ multiValueHeaders }: HttpEvent, { status, headers, body }: Reply): HttpResult {
  const { connection: _, ...own } = headers;
  const lists = Object.fromEntries(Object.entries(own).map(([name, value]) => [name, [value]]));
  const headerFields = multiValueHeaders ? { multiValueHeaders: lists } : { headers: own };
  return { statusCode: status, ...headerFields, body, isBase64Encoded: false };
}
