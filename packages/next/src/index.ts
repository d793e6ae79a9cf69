/**
 * Mounts a receiver on route handlers of the Next.js App Router.
 *
 * @module
 */

import type { ReadyOptions } from "@payhooks/core";
import {
  type AnyReceiver,
  answerProbe,
  answerRequest,
  answerWork,
  checkNames,
  mountFlow,
  mountProbe,
  type ReceiverOrFactory,
  type SourceNameOf,
  type WorkRouteOptions,
} from "@payhooks/core/adapter";
import { after } from "next/server.js";

export { type SharedReceiver, sharedReceiver, type WorkRouteOptions } from "@payhooks/core/adapter";

/** Options of {@link paymentCallbacks}, {@link connectWebhooks} and {@link webhooks}. */
export interface MountOptions {
  /** Says which merchant a request is for. The key resolver gets it as a hint. */
  readonly tenant?: ((request: Request) => string | undefined) | undefined;
  /**
   * Finds the sender's address, for alerts. Next.js shows it only in headers; use one that your hosting platform sets.
   */
  readonly remoteAddress?: ((request: Request) => string | undefined) | undefined;
}

/** A function that a `route.ts` exports under the name of an HTTP method. */
export type RouteHandler = (request: Request) => Promise<Response>;

/**
 * Receives payment callbacks. Unless `run` says otherwise, events run after the response.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `payments`.
 * @example export const POST = paymentCallbacks(receiver);
 */
export function paymentCallbacks(receiver: ReceiverOrFactory, options: MountOptions = {}): RouteHandler {
  return webhooks<AnyReceiver>(receiver, "payments", options);
}

/**
 * Receives connected-account webhooks. Unless `run` says otherwise, events run after the response.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `connect`.
 * @example export const POST = connectWebhooks(receiver);
 */
export function connectWebhooks(receiver: ReceiverOrFactory, options: MountOptions = {}): RouteHandler {
  return webhooks<AnyReceiver>(receiver, "connect", options);
}

/**
 * Runs the events that are due when a cron job calls it with `Authorization: Bearer <secret>`. It answers 200 with the
 * report of `receiver.work`, 401 to any other caller, and 500 `ERR_MISCONFIGURED` while there is no secret.
 *
 * @example export const GET = workRoute(receiver, { secret: process.env.CRON_SECRET });
 */
export function workRoute(receiver: ReceiverOrFactory, options: WorkRouteOptions): RouteHandler {
  checkNames("workRoute", options, { secret: true, deadlineMs: true, limit: true });
  return (request) => answerWork(receiver, request, options, undefined);
}

/**
 * Tells a load balancer or an orchestrator whether the process should keep running. It answers 200 `{"ok":true}`, and
 * 503 once the receiver closes.
 *
 * @example export const GET = live(receiver);
 */
export function live(receiver: ReceiverOrFactory): RouteHandler {
  return probeRoute(mountProbe(receiver, "live"));
}

/**
 * Tells a load balancer whether to send deliveries here. It answers 200 `{"ok":true}`, or 503 with a `code`: while
 * nothing can be accepted, once the receiver closes and, with `maxDueAgeMs`, while an event has been due for longer.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` when `maxDueAgeMs` is not a positive number.
 * @example export const GET = ready(receiver, { maxDueAgeMs: 60_000 });
 */
export function ready(receiver: ReceiverOrFactory, options: ReadyOptions = {}): RouteHandler {
  return probeRoute(mountProbe(receiver, "ready", options));
}

/**
 * Reads the request although the answer does not depend on it. With `cacheComponents`, Next.js would otherwise ask once,
 * while it builds, and give that answer for ever. `connection()` does the same, but only inside of Next.js.
 */
function probeRoute(probe: ReturnType<typeof mountProbe<void>>): RouteHandler {
  return async (request) => {
    void request.url;
    return answerProbe(probe, undefined);
  };
}

const RAW_BODY_FIX = "do not call request.json() or request.text() before it, or hand it a request.clone()";

/**
 * Receives the webhooks of a source, as {@link connectWebhooks} receives those of connected accounts.
 *
 * @throws PayhooksError `ERR_SOURCE_UNKNOWN` when the receiver has no source with this name.
 * @example export const POST = webhooks(receiver, "billing");
 */
export function webhooks<Mounted extends AnyReceiver>(
  receiver: ReceiverOrFactory<void, Mounted>,
  source: SourceNameOf<Mounted>,
  options: MountOptions = {},
): RouteHandler {
  checkNames(`The mount of ${source}`, options, { tenant: true, remoteAddress: true });
  const { tenant, remoteAddress } = options;
  const mountedFlow = mountFlow(receiver, source);
  return (request) => {
    const facts = {
      tenant: tenant?.(request),
      remoteAddress: remoteAddress?.(request),
      waitUntil: after,
      fix: RAW_BODY_FIX,
    };
    return answerRequest(mountedFlow, request, facts, undefined);
  };
}
