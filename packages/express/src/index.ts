/**
 * Mounts a receiver on Express 4 or 5.
 *
 * @module
 */

import type { IncomingMessage } from "node:http";
import { type BodyFault, mountFlow, type ReceiverSource, writeReply } from "@payhooks/core/adapter";
import type { Request, RequestHandler } from "express";
import getRawBody from "raw-body";

/** Options of {@link paymentCallbacks} and {@link connectWebhooks}. */
export interface MountOptions {
  /** Which merchant a request is for: a hint for the resolver. */
  readonly tenant?: ((request: Request) => string | undefined) | undefined;
}

/**
 * Receives payment callbacks. The receiver starts in the turn after the mounting; a wrong set-up ends the process.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `payments`.
 * @example app.use("/callbacks/pay", paymentCallbacks(receiver));
 */
export function paymentCallbacks(receiver: ReceiverSource, options: MountOptions = {}): RequestHandler {
  return mount(receiver, "payments", options);
}

/**
 * Receives connected-account webhooks. The receiver starts in the turn after the mounting; a wrong set-up ends the
 * process.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `connect`.
 * @example app.use("/webhooks/connect", connectWebhooks(receiver));
 */
export function connectWebhooks(receiver: ReceiverSource, options: MountOptions = {}): RequestHandler {
  return mount(receiver, "connect", options);
}

/**
 * Keeps the exact bytes where a parser has to stand above Payhooks.
 *
 * @example app.use(express.json({ verify: captureRawBody }));
 */
export function captureRawBody(request: IncomingMessage, _response: unknown, body: Uint8Array): void {
  (request as IncomingMessage & KeptBody).rawBody = body;
}

interface KeptBody {
  rawBody?: unknown;
}

const CONSUMED: BodyFault = {
  code: "ERR_BODY_CONSUMED",
  why: "a body parser ran before Payhooks and the exact bytes are gone: mount Payhooks above app.use(express.json()), or write app.use(express.json({ verify: captureRawBody })) with captureRawBody from @payhooks/express",
};

function mount(
  source: ReceiverSource,
  flow: "payments" | "connect",
  { tenant }: MountOptions,
): RequestHandler {
  const mounted = mountFlow(source, flow);
  mounted.startSoon();
  return (request, response, next) => {
    mounted
      .answer({
        method: request.method,
        url: request.originalUrl,
        headers: { get: (name) => request.get(name) },
        remoteAddress: request.ip,
        tenant: tenant?.(request),
        readBody: (maxBodyBytes) => readBody(request, maxBodyBytes),
      })
      .then((reply) => writeReply(request, response, reply))
      .catch(next);
  };
}

async function readBody(request: Request & KeptBody, limit: number): Promise<Uint8Array | BodyFault> {
  for (const kept of [request.rawBody, request.body as unknown]) {
    if (kept instanceof Uint8Array) return isWhole(kept, request) ? kept : CONSUMED;
  }
  if (request.readableDidRead) return CONSUMED;
  // Read to its end without a single byte: there were none.
  if (request.readableEnded) return new Uint8Array(0);
  try {
    return await getRawBody(request, { limit });
  } catch (error) {
    const { type, message: why } = error as getRawBody.RawBodyError;
    if (type === "stream.encoding.set") return CONSUMED;
    return { code: type === "entity.too.large" ? "ERR_BODY_TOO_LARGE" : "ERR_BODY_INCOMPLETE", why };
  }
}

/** Bytes that a parser kept are the body only if they are as many as were sent. */
function isWhole(kept: Uint8Array, request: Request): boolean {
  const length = request.get("content-length");
  return length === undefined || Number(length) === kept.byteLength;
}
