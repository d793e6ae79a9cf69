import type { IncomingMessage, ServerResponse } from "node:http";
import { type DeliveryHead, LINGER_MS, type Reply } from "../protocol/delivery.ts";
import { systemClock } from "../time/clock.ts";
import { bytesOfText } from "./kept-text.ts";
import type { BodyFault } from "./mount.ts";

/** The bytes that some parsers keep on Node's request. */
export interface KeptBody {
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

/** Reads a stream to its end, up to a limit, as `raw-body` does. Rejects with an error whose `type` says why. */
export type ReadStream = (
  request: IncomingMessage,
  options: { readonly limit: number },
) => Promise<Uint8Array>;

/** How an adapter reads bodies. */
export interface ReadOptions {
  readonly read: ReadStream;
  /** The property in which parsers keep the bytes, if they do. */
  readonly kept?: KeptBody;
  /** The advice for a parser that keeps no bytes. */
  readonly fix: string;
}

/**
 * The exact bytes of a request's body, for adapters whose framework exposes Node's own request. They are read from the socket,
 * or taken from a parser that has kept them.
 */
export async function readNodeBody(
  request: IncomingMessage,
  maxBodyBytes: number,
  { read, kept: { rawBody, body } = {}, fix }: ReadOptions,
): Promise<Uint8Array | BodyFault> {
  const consumedFault: BodyFault = {
    code: "ERR_BODY_CONSUMED",
    why: `a body parser ran before Payhooks and the exact bytes are gone: ${fix}`,
  };
  for (const keptBody of [rawBody, body]) {
    if (keptBody instanceof Uint8Array) return isWhole(keptBody, request) ? keptBody : consumedFault;
    if (typeof keptBody !== "string") continue;
    return (
      bytesOfText(keptBody, request.headers["content-length"]) ?? {
        code: "ERR_BODY_CONSUMED",
        why: `a body parser ran before Payhooks and kept the body as text, which is not as long as its content-length: keep the bytes (a Buffer) in request.rawBody, or ${fix}`,
      }
    );
  }
  if (request.readableDidRead || request.readableEncoding !== null) return consumedFault;
  // The body was read to its end without a single byte, so it has none.
  if (request.readableEnded) return new Uint8Array(0);
  if (request.destroyed) return INCOMPLETE_BODY_FAULT;
  // A connection that breaks later must not end the process.
  request.on("error", () => {});
  try {
    return await read(request, { limit: maxBodyBytes });
  } catch (error) {
    if ((error as { type?: unknown } | null)?.type !== "entity.too.large") return INCOMPLETE_BODY_FAULT;
    return { code: "ERR_BODY_TOO_LARGE", why: `the body has more than ${maxBodyBytes} bytes` };
  }
}

const INCOMPLETE_BODY_FAULT: BodyFault = {
  code: "ERR_BODY_INCOMPLETE",
  why: "the connection ended in the middle of the body",
};

/** The headers of a request, as a delivery has them. */
export function nodeHeaders(request: IncomingMessage): DeliveryHead["headers"] {
  return { get: (name) => nodeHeader(request, name), keys: () => Object.keys(request.headers) };
}

/**
 * A header's value. Repeated headers are joined, as in web-standard requests. Of several content types, Node itself keeps only
 * the first one.
 */
function nodeHeader({ headers, rawHeaders }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  if (name !== "content-type") return Array.isArray(value) ? value.join(", ") : value;
  const contentTypes: (string | undefined)[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const headerName = rawHeaders[index];
    if (headerName?.length === name.length && headerName.toLowerCase() === name)
      contentTypes.push(rawHeaders[index + 1]);
  }
  return contentTypes.length > 1 ? contentTypes.join(", ") : headers["content-type"];
}

/** The bytes that a parser kept are the whole body only if their number equals the announced length. */
function isWhole(keptBytes: Uint8Array, { headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return length === undefined || Number(length) === keptBytes.byteLength;
}

/**
 * Writes a reply through Node's own response, for adapters whose framework exposes it. If the connection is to be closed while
 * the sender is still sending, the rest is read and discarded for a while first. Closing at once would reset the connection,
 * and the answer could be lost.
 */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Reply,
): void {
  // Other code, such as time-out middleware, has answered already.
  if (response.headersSent) return;
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
  if (headers.connection !== "close" || request.complete) {
    response.end(body);
    return;
  }
  response.write(body);
  const cancelTimer = systemClock.after(LINGER_MS, () => response.end());
  const endResponse = (): void => {
    cancelTimer();
    response.end();
  };
  request.once("end", endResponse).once("close", endResponse).resume();
}
