/**
 * Mounts a receiver on Express 4 or 5.
 *
 * @module
 */

import type { IncomingMessage } from "node:http";
import type { ReadyOptions } from "@payhooks/core";
import {
  type AnyReceiver,
  checkNames,
  mountFlow,
  mountProbe,
  nodeFlowHandler,
  nodeProbeHandler,
  type ReceiverOrFactory,
  type SourceNameOf,
} from "@payhooks/core/adapter";
import type { Request, RequestHandler } from "express";
import getRawBody from "raw-body";

/** Options of {@link paymentCallbacks}, {@link connectWebhooks} and {@link webhooks}. */
export interface MountOptions {
  /** Says which merchant a request is for. The key resolver gets it as a hint. */
  readonly tenant?: ((request: Request) => string | undefined) | undefined;
}

/**
 * Receives payment callbacks. The receiver starts one turn of the event loop after it is mounted. If its set-up is
 * wrong, the process ends.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `payments`.
 * @example app.use("/callbacks/pay", paymentCallbacks(receiver));
 */
export function paymentCallbacks(receiver: ReceiverOrFactory, options: MountOptions = {}): RequestHandler {
  return webhooks<AnyReceiver>(receiver, "payments", options);
}

/**
 * Receives connected-account webhooks. The receiver starts one turn of the event loop after it is mounted. If its
 * set-up is wrong, the process ends.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `connect`.
 * @example app.use("/webhooks/connect", connectWebhooks(receiver));
 */
export function connectWebhooks(receiver: ReceiverOrFactory, options: MountOptions = {}): RequestHandler {
  return webhooks<AnyReceiver>(receiver, "connect", options);
}

/**
 * Tells a load balancer or an orchestrator whether the process should keep running. It answers 200 `{"ok":true}`, and
 * 503 once the receiver closes.
 *
 * @example app.get("/live", live(receiver));
 */
export function live(receiver: ReceiverOrFactory): RequestHandler {
  return nodeProbeHandler(mountProbe(receiver, "live"));
}

/**
 * Tells a load balancer whether to send deliveries here. It answers 200 `{"ok":true}`, or 503 with a `code`: while
 * nothing can be accepted, once the receiver closes and, with `maxDueAgeMs`, while an event has been due for longer.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` when `maxDueAgeMs` is not a positive number.
 * @example app.get("/ready", ready(receiver, { maxDueAgeMs: 60_000 }));
 */
export function ready(receiver: ReceiverOrFactory, options: ReadyOptions = {}): RequestHandler {
  return nodeProbeHandler(mountProbe(receiver, "ready", options));
}

/**
 * Keeps the exact bytes of a body, for applications in which a parser must run before Payhooks.
 *
 * @example app.use(express.json({ verify: captureRawBody }));
 */
export function captureRawBody(request: IncomingMessage, _response: unknown, body: Uint8Array): void {
  (request as { rawBody?: unknown }).rawBody = body;
}

const RAW_BODY_FIX =
  "mount Payhooks above app.use(express.json()), or write app.use(express.json({ verify: captureRawBody })) with captureRawBody from @payhooks/express";

/**
 * Receives the webhooks of a source, as {@link connectWebhooks} receives those of connected accounts.
 *
 * @throws PayhooksError `ERR_SOURCE_UNKNOWN` when the receiver has no source with this name.
 * @example app.use("/webhooks/billing", webhooks(receiver, "billing"));
 */
export function webhooks<Mounted extends AnyReceiver>(
  receiver: ReceiverOrFactory<void, Mounted>,
  source: SourceNameOf<Mounted>,
  options: MountOptions = {},
): RequestHandler {
  checkNames(`The mount of ${source}`, options, { tenant: true });
  const mountedFlow = mountFlow(receiver, source);
  mountedFlow.startSoon();
  return nodeFlowHandler(mountedFlow, { tenant: options.tenant, read: getRawBody, fix: RAW_BODY_FIX });
}
