/**
 * Mounts a receiver on AWS Lambda: behind API Gateway (payload formats 1.0 and 2.0), a function URL or a load balancer.
 *
 * @module
 */

import type { ReadyOptions } from "@payhooks/core";
import { PayhooksError } from "@payhooks/core";
import {
  type AnyReceiver,
  checkNames,
  type Endpoint,
  mountFlow,
  mountProbe,
  type ReceiverOrFactory,
  type SourceNameOf,
} from "@payhooks/core/adapter";
import {
  bodyOf,
  type HttpEvent,
  type HttpResult,
  headerOf,
  methodOf,
  peerOf,
  resultOf,
  urlOf,
} from "./events.ts";

export type { HttpEvent, HttpResult } from "./events.ts";
export { type QueueBatch, type QueueResult, runQueue } from "./queue.ts";

/** Options of {@link paymentCallbacks}, {@link connectWebhooks} and {@link webhooks}. */
export interface MountOptions {
  /** Says which merchant a request is for. The key resolver gets it as a hint. */
  readonly tenant?: ((event: HttpEvent) => string | undefined) | undefined;
  /**
   * Finds the sender's address, for alerts. Default: the peer's, as API Gateway, the function URL or the load balancer knows it.
   */
  readonly remoteAddress?: ((event: HttpEvent) => string | undefined) | undefined;
}

/** A function that Lambda calls with a request. */
export type HttpFunction = (event: HttpEvent) => Promise<HttpResult>;

/**
 * Receives payment callbacks.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `payments`; `ERR_OPTION_INVALID` unless it has `ack:
 * "handled"` or `run: "elsewhere"`.
 * @example export const handler = paymentCallbacks(receiver);
 */
export function paymentCallbacks(receiver: ReceiverOrFactory, options: MountOptions = {}): HttpFunction {
  return webhooks<AnyReceiver>(receiver, "payments", options);
}

/**
 * Receives connected-account webhooks.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `connect`; `ERR_OPTION_INVALID` unless it has `ack: "handled"` or
 * `run: "elsewhere"`.
 * @example export const handler = connectWebhooks(receiver);
 */
export function connectWebhooks(receiver: ReceiverOrFactory, options: MountOptions = {}): HttpFunction {
  return webhooks<AnyReceiver>(receiver, "connect", options);
}

/** Tells whether the receiver should keep running: 200 `{"ok":true}`, and 503 once it closes. */
export function live(receiver: ReceiverOrFactory): HttpFunction {
  const probe = mountProbe(receiver, "live");
  return async (event) => resultOf(event, await probe());
}

/**
 * Tells whether to send deliveries here: 200 `{"ok":true}`, or 503 with a `code`, such as while the store is away.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` when `maxDueAgeMs` is not a positive number.
 */
export function ready(receiver: ReceiverOrFactory, options: ReadyOptions = {}): HttpFunction {
  const probe = mountProbe(receiver, "ready", options);
  return async (event) => resultOf(event, await probe());
}

/**
 * Receives the webhooks of a source, as {@link connectWebhooks} receives those of connected accounts.
 *
 * @throws PayhooksError `ERR_SOURCE_UNKNOWN` when the receiver has no source with this name; `ERR_OPTION_INVALID` as above.
 * @example export const handler = webhooks(receiver, "billing");
 */
export function webhooks<Mounted extends AnyReceiver>(
  receiver: ReceiverOrFactory<void, Mounted>,
  source: SourceNameOf<Mounted>,
  options: MountOptions = {},
): HttpFunction {
  checkNames(`The mount of ${source}`, options, { tenant: true, remoteAddress: true });
  const { tenant, remoteAddress = peerOf } = options;
  const mountedFlow = mountFlow(receiver, source, checkFreezing);
  return async (event) => {
    // Work that is not done when the answer is returned may be frozen with the process.
    const unfinished: Promise<unknown>[] = [];
    const reply = await mountedFlow.answer({
      method: methodOf(event),
      url: urlOf(event),
      headers: {
        get: (name) => headerOf(event, name),
        keys: () => Object.keys(event.multiValueHeaders ?? event.headers ?? {}),
      },
      remoteAddress: remoteAddress(event),
      tenant: tenant?.(event),
      waitUntil: (work) => void unfinished.push(work),
      readBody: async (maxBodyBytes) => bodyOf(event, maxBodyBytes),
    });
    await Promise.all(unfinished);
    return resultOf(event, reply);
  };
}

/** The process is frozen between two requests, so nothing may be left to run in it. */
function checkFreezing({ ack, run }: Endpoint): void {
  if (run === "elsewhere" || (ack === "handled" && run !== "background")) return;
  throw new PayhooksError(
    "ERR_OPTION_INVALID",
    `On Lambda no handler can run after the answer, as ack: "${ack}" with run: "${run ?? "background"}" means.`,
    {
      fix: 'Give createReceiver ack: "handled", without run. Or give it run: "elsewhere" and notifyWorker, and a function for the queue: runQueue(receiver).',
    },
  );
}
