/**
 * Mounts a receiver on any runtime with web-standard requests: Bun, Deno, Cloudflare Workers, SvelteKit and others.
 *
 * @module
 */

import { answerRequest, mountFlow, type ReceiverSource } from "./adapter.ts";

export type { ReceiverSource } from "./adapter.ts";

/** What some platforms hand over beside the request. */
export interface FetchContext {
  /** Keeps the platform from ending before the promise settles. */
  waitUntil?(work: Promise<unknown>): void;
}

/** Options of {@link paymentCallbacks} and {@link connectWebhooks}. */
export interface FetchOptions<Platform = unknown> {
  /** Which merchant a request is for: a hint for the resolver. */
  readonly tenant?: ((request: Request, platform: Platform) => string | undefined) | undefined;
  /** The sender's address, for alerts; which header or context has it depends on the platform. */
  readonly remoteAddress?: ((request: Request, platform: Platform) => string | undefined) | undefined;
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
  options: FetchOptions<Platform> = {},
): FetchHandler<Platform> {
  return mount(receiver, "payments", options);
}

/** Receives connected-account webhooks. */
export function connectWebhooks<Platform = unknown>(
  receiver: ReceiverSource<Platform>,
  options: FetchOptions<Platform> = {},
): FetchHandler<Platform> {
  return mount(receiver, "connect", options);
}

const FIX =
  "mount it before anything that calls request.json() or request.text(), or hand it a request.clone()";

function mount<Platform>(
  source: ReceiverSource<Platform>,
  flow: "payments" | "connect",
  { tenant, remoteAddress }: FetchOptions<Platform>,
): FetchHandler<Platform> {
  const mounted = mountFlow(source, flow);
  return async (request, platform, context) => {
    const facts = {
      tenant: tenant?.(request, platform as Platform),
      remoteAddress: remoteAddress?.(request, platform as Platform),
      waitUntil: context?.waitUntil?.bind(context),
      fix: FIX,
    };
    return answerRequest(mounted, request, facts, platform as Platform);
  };
}
