/**
 * Mounts a receiver on any runtime with web-standard requests: Bun, Deno, Cloudflare Workers, SvelteKit and others.
 *
 * @module
 */

import { sleep, systemClock } from "./clock.ts";
import type { Reply } from "./delivery.ts";
import type { Endpoint } from "./intake.ts";
import type { Receiver } from "./receiver.ts";

/** A receiver, or what makes one where the environment comes with the request (Workers). Called once per platform. */
export type ReceiverSource<Platform> = Receiver | ((platform: Platform) => Receiver | Promise<Receiver>);

/** What some platforms hand over beside the request. */
export interface FetchContext {
  waitUntil?(work: Promise<unknown>): void;
}

/** Options of {@link paymentCallbacks} and {@link connectWebhooks}. */
export interface FetchOptions {
  /** Which merchant a request is for: a hint for the resolver. */
  readonly tenant?: ((request: Request) => string | undefined) | undefined;
  /** The sender's address, for alerts; which header or context has it depends on the platform. */
  readonly remoteAddress?: ((request: Request) => string | undefined) | undefined;
}

/** A web-standard handler. */
export type FetchHandler<Platform> = (
  request: Request,
  platform?: Platform,
  context?: FetchContext,
) => Promise<Response>;

/** Receives payment callbacks: `export default { fetch: paymentCallbacks(receiver) }`. */
export function paymentCallbacks<Platform = unknown>(
  receiver: ReceiverSource<Platform>,
  options: FetchOptions = {},
): FetchHandler<Platform> {
  return mount(receiver, "payments", options);
}

/** Receives connected-account webhooks. */
export function connectWebhooks<Platform = unknown>(
  receiver: ReceiverSource<Platform>,
  options: FetchOptions = {},
): FetchHandler<Platform> {
  return mount(receiver, "connect", options);
}

function mount<Platform>(
  source: ReceiverSource<Platform>,
  flow: "payments" | "connect",
  options: FetchOptions,
): FetchHandler<Platform> {
  // A receiver that is there already tells at the mounting whether its flow is on.
  if (typeof source !== "function") void source[flow];
  let made: Promise<Receiver> | null = null;
  return async (request, platform, context) => {
    made ??= Promise.resolve(typeof source === "function" ? source(platform as Platform) : source);
    const receiver = await made.catch((error: unknown) => {
      made = null;
      throw error;
    });
    return toResponse(await receive(receiver[flow], request, options, context));
  };
}

async function receive(
  endpoint: Endpoint,
  request: Request,
  { tenant, remoteAddress }: FetchOptions,
  context: FetchContext | undefined,
): Promise<Reply> {
  const address = remoteAddress?.(request);
  const early = endpoint.check(request, address);
  if (early !== null) return early;
  if (request.bodyUsed) {
    return endpoint.refuse(
      "ERR_BODY_CONSUMED",
      "the request's body was read before: mount Payhooks before anything that calls request.json() or request.text()",
      address,
    );
  }
  const read = await readBody(request, endpoint);
  if (!(read instanceof Uint8Array)) return endpoint.refuse(read, "while reading the body", address);
  const delivery = {
    method: request.method,
    url: request.url,
    headers: request.headers,
    rawBody: read,
    remoteAddress: address,
    tenant: tenant?.(request),
    waitUntil: context?.waitUntil?.bind(context),
  };
  return endpoint.receive(delivery, { start: true });
}

type BodyFault = "ERR_BODY_TOO_LARGE" | "ERR_BODY_TIMEOUT" | "ERR_BODY_INCOMPLETE";

/** The body's exact bytes, bounded in size and time. */
async function readBody(
  request: Request,
  { maxBodyBytes, bodyTimeoutMs }: Endpoint,
): Promise<Uint8Array | BodyFault> {
  if (request.body === null) return new Uint8Array(0);
  const reader = request.body.getReader();
  const timeUp = sleep(systemClock, bodyTimeoutMs).then(() => "ERR_BODY_TIMEOUT" as const);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const part = await Promise.race([reader.read(), timeUp]);
      if (part === "ERR_BODY_TIMEOUT") return part;
      if (part.done) break;
      length += part.value.byteLength;
      if (length > maxBodyBytes) return "ERR_BODY_TOO_LARGE";
      chunks.push(part.value);
    }
  } catch {
    return "ERR_BODY_INCOMPLETE";
  } finally {
    // The rest of a body that is too long or too slow is not wanted.
    reader.cancel().catch(() => {});
  }
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.byteLength;
  }
  return body;
}

function toResponse({ status, headers, body }: Reply): Response {
  return new Response(body, { status, headers });
}
