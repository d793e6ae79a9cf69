/**
 * Mounts a receiver on Hono, on any runtime that Hono runs on.
 *
 * @module
 */

import type { ReadyOptions } from "@payhooks/core";
import {
  type AnyReceiver,
  answerProbe,
  answerRequest,
  checkNames,
  mountFlow,
  mountProbe,
  type ReceiverOrFactory,
  type SourceNameOf,
} from "@payhooks/core/adapter";
import type { Context, Env, Handler } from "hono";
import { getRuntimeKey } from "hono/adapter";

/** Options of {@link paymentCallbacks}, {@link connectWebhooks} and {@link webhooks}. */
export interface MountOptions {
  /** Says which merchant a request is for. The key resolver gets it as a hint. */
  readonly tenant?: ((context: Context) => string | undefined) | undefined;
  /** Finds the sender's address, for alerts. Default: the peer's address on `@hono/node-server`, and none elsewhere. */
  readonly remoteAddress?: ((context: Context) => string | undefined) | undefined;
}

/**
 * Receives payment callbacks. On Node, Bun and Deno the receiver starts one turn of the event loop after it is mounted,
 * and the process ends if its set-up is wrong. A factory is called with the first request's `c.env` instead.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `payments`.
 * @example app.all("/callbacks/pay", paymentCallbacks(receiver));
 */
export function paymentCallbacks<E extends Env = Env>(
  receiver: ReceiverOrFactory<E["Bindings"]>,
  options: MountOptions = {},
): Handler<E> {
  return webhooks<AnyReceiver, E>(receiver, "payments", options);
}

/**
 * Receives connected-account webhooks. On Node, Bun and Deno the receiver starts one turn of the event loop after it is
 * mounted, and the process ends if its set-up is wrong. A factory is called with the first request's `c.env` instead.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `connect`.
 * @example app.all("/webhooks/connect", connectWebhooks(receiver));
 */
export function connectWebhooks<E extends Env = Env>(
  receiver: ReceiverOrFactory<E["Bindings"]>,
  options: MountOptions = {},
): Handler<E> {
  return webhooks<AnyReceiver, E>(receiver, "connect", options);
}

/**
 * Tells a load balancer or an orchestrator whether the process should keep running. It answers 200 `{"ok":true}`, and
 * 503 once the receiver closes.
 *
 * @example app.get("/live", live(receiver));
 */
export function live<E extends Env = Env>(receiver: ReceiverOrFactory<E["Bindings"]>): Handler<E> {
  const probe = mountProbe(receiver, "live");
  return ({ env }) => answerProbe(probe, env);
}

/**
 * Tells a load balancer whether to send deliveries here. It answers 200 `{"ok":true}`, or 503 with a `code`: while
 * nothing can be accepted, once the receiver closes and, with `maxDueAgeMs`, while an event has been due for longer.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` when `maxDueAgeMs` is not a positive number.
 * @example app.get("/ready", ready(receiver, { maxDueAgeMs: 60_000 }));
 */
export function ready<E extends Env = Env>(
  receiver: ReceiverOrFactory<E["Bindings"]>,
  options: ReadyOptions = {},
): Handler<E> {
  const probe = mountProbe(receiver, "ready", options);
  return ({ env }) => answerProbe(probe, env);
}

/**
 * Receives the webhooks of a source, as {@link connectWebhooks} receives those of connected accounts.
 *
 * @throws PayhooksError `ERR_SOURCE_UNKNOWN` when the receiver has no source with this name.
 * @example app.all("/webhooks/billing", webhooks(receiver, "billing"));
 */
export function webhooks<Mounted extends AnyReceiver, E extends Env = Env>(
  receiver: ReceiverOrFactory<E["Bindings"], Mounted>,
  source: SourceNameOf<Mounted>,
  options: MountOptions = {},
): Handler<E> {
  checkNames(`The mount of ${source}`, options, { tenant: true, remoteAddress: true });
  const mountedFlow = mountFlow(receiver, source);
  if (typeof receiver !== "function" && ["node", "bun", "deno"].includes(getRuntimeKey()))
    mountedFlow.startSoon(undefined as E["Bindings"]);
  return (context) => {
    const facts = {
      tenant: options.tenant?.(context),
      remoteAddress: (options.remoteAddress ?? peerOf)(context),
      waitUntil: waitUntilOf(context),
      // c.req keeps what it has read in a cache, and re-encodes it for later readers. The raw request may look unread.
      bodyUsed: Object.keys(context.req.bodyCache).length > 0,
      kept: context.req.bodyCache,
      fix: "mount it above the code that calls c.req.json(), c.req.text() or c.req.parseBody()",
    };
    return answerRequest(mountedFlow, context.req.raw, facts, context.env);
  };
}

/** The address of the peer. `@hono/node-server` puts Node's own request into `env`. */
function peerOf({ env }: Context): string | undefined {
  return (env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming?.socket
    ?.remoteAddress;
}

/** The platform's `waitUntil`, if there is one. It keeps the runtime alive after the response. */
function waitUntilOf(context: Context): ((work: Promise<unknown>) => void) | undefined {
  try {
    return context.executionCtx.waitUntil.bind(context.executionCtx);
  } catch {
    // Hono throws if the platform gives this request no execution context.
    return undefined;
  }
}
