/**
 * Mounts a receiver on any runtime with web-standard requests: Bun, Deno, Cloudflare Workers, SvelteKit and others.
 *
 * @module
 */

import { type BodyFault, mountFlow, type ReceiverSource } from "./adapter.ts";

export type { ReceiverSource } from "./adapter.ts";

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
  { tenant, remoteAddress }: FetchOptions,
): FetchHandler<Platform> {
  const mounted = mountFlow(source, flow);
  return async (request, platform, context) => {
    const incoming = {
      method: request.method,
      url: request.url,
      headers: request.headers,
      remoteAddress: remoteAddress?.(request),
      tenant: tenant?.(request),
      waitUntil: context?.waitUntil?.bind(context),
      readBody: (maxBodyBytes: number, signal: AbortSignal) => readBody(request, maxBodyBytes, signal),
    };
    const { status, headers, body } = await mounted.answer(incoming, platform as Platform);
    return new Response(body, { status, headers });
  };
}

/** The body's exact bytes, bounded in size. What is left of one that is too long or too slow is not wanted. */
async function readBody(
  request: Request,
  maxBodyBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | BodyFault> {
  if (request.bodyUsed || request.body?.locked === true) {
    return {
      code: "ERR_BODY_CONSUMED",
      why: "the request's body was read before: mount Payhooks before anything that calls request.json() or request.text()",
    };
  }
  if (request.body === null) return new Uint8Array(0);
  const reader = request.body.getReader();
  const cancel = (): void => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", cancel);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const part = await reader.read();
      if (part.done) break;
      length += part.value.byteLength;
      if (length > maxBodyBytes) {
        cancel();
        return { code: "ERR_BODY_TOO_LARGE", why: `the body has more than ${maxBodyBytes} bytes` };
      }
      chunks.push(part.value);
    }
  } catch (error) {
    return { code: "ERR_BODY_INCOMPLETE", why: String(error) };
  } finally {
    signal.removeEventListener("abort", cancel);
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
