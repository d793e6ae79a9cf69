/**
 * Mounts a receiver on Fastify.
 *
 * @module
 */

import type { ReadyOptions } from "@payhooks/core";
import {
  type AnyReceiver,
  checkNames,
  type KeptBody,
  mountFlow,
  mountProbe,
  nodeHeaders,
  type ReceiverOrFactory,
  readNodeBody,
  type SourceNameOf,
  writeReply,
} from "@payhooks/core/adapter";
import type {
  FastifyError,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  RouteHandlerMethod,
} from "fastify";
import getRawBody from "raw-body";

/** Options of {@link paymentCallbacks}, {@link connectWebhooks} and {@link webhooks}. */
export interface MountOptions {
  /** Says which merchant a request is for. The key resolver gets it as a hint. */
  readonly tenant?: ((request: FastifyRequest) => string | undefined) | undefined;
}

/**
 * Receives payment callbacks, as a plugin: the path is its prefix. The receiver starts one turn of the event loop after
 * it is registered. If its set-up is wrong, the process ends. JSON parsing outside the plugin stays as it is.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `payments`.
 * @example app.register(paymentCallbacks(receiver), { prefix: "/callbacks/pay" });
 */
export function paymentCallbacks(
  receiver: ReceiverOrFactory,
  options: MountOptions = {},
): FastifyPluginCallback {
  return webhooks<AnyReceiver>(receiver, "payments", options);
}

/**
 * Receives connected-account webhooks, as a plugin: the path is its prefix. The receiver starts one turn of the event
 * loop after it is registered. If its set-up is wrong, the process ends. JSON parsing outside the plugin stays as it
 * is.
 *
 * @throws PayhooksError `ERR_FLOW_OFF` when the receiver has no `connect`.
 * @example app.register(connectWebhooks(receiver), { prefix: "/webhooks/connect" });
 */
export function connectWebhooks(
  receiver: ReceiverOrFactory,
  options: MountOptions = {},
): FastifyPluginCallback {
  return webhooks<AnyReceiver>(receiver, "connect", options);
}

/**
 * Tells a load balancer or an orchestrator whether the process should keep running. It answers 200 `{"ok":true}`, and
 * 503 once the receiver closes.
 *
 * @example app.get("/live", live(receiver));
 */
export function live(receiver: ReceiverOrFactory): RouteHandlerMethod {
  return probeHandler(mountProbe(receiver, "live"));
}

/**
 * Tells a load balancer whether to send deliveries here. It answers 200 `{"ok":true}`, or 503 with a `code`: while
 * nothing can be accepted, once the receiver closes and, with `maxDueAgeMs`, while an event has been due for longer.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` when `maxDueAgeMs` is not a positive number.
 * @example app.get("/ready", ready(receiver, { maxDueAgeMs: 60_000 }));
 */
export function ready(receiver: ReceiverOrFactory, options: ReadyOptions = {}): RouteHandlerMethod {
  return probeHandler(mountProbe(receiver, "ready", options));
}

function probeHandler(probe: ReturnType<typeof mountProbe<void>>): RouteHandlerMethod {
  return async ({ raw }, reply) => {
    const answered = await probe();
    reply.hijack();
    writeReply(raw, reply.raw, answered);
  };
}

/**
 * Receives the webhooks of a source, as {@link connectWebhooks} receives those of connected accounts.
 *
 * @throws PayhooksError `ERR_SOURCE_UNKNOWN` when the receiver has no source with this name.
 * @example app.register(webhooks(receiver, "billing"), { prefix: "/webhooks/billing" });
 */
export function webhooks<Mounted extends AnyReceiver>(
  receiver: ReceiverOrFactory<void, Mounted>,
  source: SourceNameOf<Mounted>,
  options: MountOptions = {},
): FastifyPluginCallback {
  checkNames(`The mount of ${source}`, options, { tenant: true });
  const { tenant } = options;
  const mountedFlow = mountFlow(receiver, source);
  mountedFlow.startSoon();
  return (app, _options, done) => {
    const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { raw } = request;
      const flowReply = await mountedFlow.answer({
        method: request.method,
        url: request.originalUrl,
        headers: nodeHeaders(raw),
        remoteAddress: request.ip,
        tenant: tenant?.(request),
        readBody: (maxBodyBytes) =>
          readNodeBody(raw, maxBodyBytes, {
            read: getRawBody,
            kept: request as KeptBody,
            fix: "a preParsing hook has read the stream: register Payhooks outside of the scope that the hook is in",
          }),
      });
      reply.hijack();
      writeReply(raw, reply.raw, flowReply);
    };
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", (_request, _payload, next) => next(null));
    // Fastify refuses a malformed content type before it looks for a parser. Such a request goes to the receiver too,
    // which answers it as it does in every framework.
    app.setErrorHandler<FastifyError>(async (error, request, reply) => {
      if (error.code !== "FST_ERR_CTP_INVALID_MEDIA_TYPE") throw error;
      await answer(request, reply);
    });
    app.all("/", answer);
    done();
  };
}
