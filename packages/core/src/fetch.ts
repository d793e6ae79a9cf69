/**
 * Mounts a receiver on any runtime with web-standard requests: Bun, Deno, Cloudflare Workers, SvelteKit and others.
 *
 * @module
 */

export {
  connectWebhooks,
  type FetchContext,
  type FetchHandler,
  type FetchOptions,
  live,
  paymentCallbacks,
  ready,
  webhooks,
} from "./http/fetch.ts";
