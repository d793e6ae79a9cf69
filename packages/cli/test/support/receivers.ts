import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isPayhooksError, verifyConnectWebhook, verifyPaymentCallback } from "@payhooks/core";
import { onTestFinished } from "vitest";

/** What a receiver written by hand does with one delivery. */
export interface HandWritten {
  /** Says whether the delivery is authentic, in its own way; throws what it throws. */
  readonly verify: (body: Buffer, request: IncomingMessage) => unknown;
  readonly badSignature?: number;
  readonly notJson?: number;
  /** Of a delivery that came before. */
  readonly duplicate?: number;
  /** Takes over the answer of genuine deliveries. */
  readonly answer?: (response: ServerResponse) => unknown;
}

const MAX_BYTES = 65_536;
const MAX_AGE_MS = 7 * 86_400_000;

/** A receiver that is right in everything but what the options break. Its address. */
export async function handWritten(options: HandWritten): Promise<string> {
  const { verify, badSignature = 401, notJson = 400, duplicate = 200, answer } = options;
  const seen = new Set<string>();
  const take = (body: Buffer, request: IncomingMessage, response: ServerResponse): unknown => {
    const text = body.toString("utf8");
    let event: Record<string, unknown>;
    try {
      event = JSON.parse(text);
    } catch {
      return end(response, notJson);
    }
    try {
      verify(body, request);
    } catch {
      return end(response, badSignature);
    }
    const signedAt = Date.parse(String(event.timestamp ?? event.occurred_at));
    if (Date.now() - signedAt > MAX_AGE_MS) return end(response, 400);
    if (seen.has(text)) return end(response, duplicate);
    seen.add(text);
    return answer === undefined ? end(response, 200) : answer(response);
  };
  return listen(async (request, response) => {
    if (request.method !== "POST") return end(response, 405);
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of request) {
      size += chunk.length;
      if (size <= MAX_BYTES) chunks.push(chunk);
    }
    if (size > MAX_BYTES) return end(response, 413);
    return take(Buffer.concat(chunks), request, response);
  });
}

/** Starts a server that ends with the test; its address, with a path. */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

function end(response: ServerResponse, status: number): unknown {
  return response.writeHead(status, { "content-type": "application/json" }).end("{}");
}

/** Verifies as the specification says. What is authentic but not usable is taken too, to be held. */
export function rightly(
  keys: { readonly publicKey: string } | { readonly secret: string },
): HandWritten["verify"] {
  return (body, request) => {
    try {
      if ("publicKey" in keys) verifyPaymentCallback(body, keys);
      else verifyConnectWebhook(body, headerOf(request), keys);
    } catch (error) {
      if (!isPayhooksError(error) || !error.code.startsWith("ERR_EVENT_")) throw error;
    }
  };
}

export function headerOf(request: IncomingMessage): string {
  return String(request.headers["x-connect-signature"] ?? "");
}
