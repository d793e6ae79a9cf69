import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodyFault } from "./adapter.ts";
import { LINGER_MS, type Reply } from "./delivery.ts";

/** What some parsers leave behind on Node's request. */
export interface KeptBody {
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

/**
 * The exact bytes of a request's body, for adapters whose framework shows Node's own request: read from the socket, or
 * as a parser has kept them.
 *
 * @param fix what to do about a parser that has kept none.
 */
export async function readNodeBody(
  request: IncomingMessage,
  maxBodyBytes: number,
  { kept: { rawBody, body } = {}, fix }: { readonly kept?: KeptBody; readonly fix: string },
): Promise<Uint8Array | BodyFault> {
  const consumed: BodyFault = {
    code: "ERR_BODY_CONSUMED",
    why: `a body parser ran before Payhooks and the exact bytes are gone: ${fix}`,
  };
  for (const bytes of [rawBody, body]) {
    if (bytes instanceof Uint8Array) return isWhole(bytes, request) ? bytes : consumed;
  }
  if (request.readableDidRead || request.readableEncoding !== null) return consumed;
  // Read to its end without a single byte: there were none.
  if (request.readableEnded) return new Uint8Array(0);
  if (request.destroyed) return incomplete;
  return readStream(request, maxBodyBytes);
}

const incomplete: BodyFault = {
  code: "ERR_BODY_INCOMPLETE",
  why: "the connection ended in the middle of the body",
};

function readStream(request: IncomingMessage, maxBodyBytes: number): Promise<Uint8Array | BodyFault> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const onData = (chunk: Uint8Array): void => {
      length += chunk.byteLength;
      chunks.push(chunk);
      if (length > maxBodyBytes) {
        settle({ code: "ERR_BODY_TOO_LARGE", why: `the body has more than ${maxBodyBytes} bytes` });
      }
    };
    const onEnd = (): void => settle(Buffer.concat(chunks, length));
    const onClose = (): void => settle(incomplete);
    function settle(result: Uint8Array | BodyFault): void {
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      // A connection that breaks later must not end the process.
      request.on("error", () => {});
      if (result !== incomplete && !(result instanceof Uint8Array)) request.pause();
      resolve(result);
    }
    request.on("data", onData).once("end", onEnd).once("close", onClose).once("error", onClose);
  });
}

/** Bytes that a parser kept are the body only if they are as many as were sent. */
function isWhole(kept: Uint8Array, { headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return length === undefined || Number(length) === kept.byteLength;
}

/**
 * Writes a reply through Node's own response, for adapters whose framework shows it. Where the connection is to be
 * closed while the sender is still sending, the rest is thrown away for a while first: closing at once would reset
 * the connection, and the answer could be lost on its way.
 */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Reply,
): void {
  // Something else has answered already, such as a time-out's middleware.
  if (response.headersSent) return;
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
  if (headers.connection !== "close" || request.complete) {
    response.end(body);
    return;
  }
  response.write(body);
  const timer = setTimeout(() => response.end(), LINGER_MS);
  const end = (): void => {
    clearTimeout(timer);
    response.end();
  };
  request.once("end", end).once("close", end).resume();
}
