import { checkNames } from "../protocol/check-names.ts";
import type { AnyReceiver, ReadyOptions, SourceNameOf } from "../receiver/receiver.ts";
import { mountFlow, type ReceiverOrFactory } from "./mount.ts";
import { answerProbe, mountProbe } from "./probe-route.ts";
import { answerRequest } from "./web.ts";

/** The argument that some platforms pass in addition to the request. */
export interface FetchContext {
  /** Keeps the process alive until the promise settles. */
  waitUntil?(work: Promise<unknown>): void;
}

/** Options of {@link paymentCallbacks}, {@link connectWebhooks} and {@link webhooks}. */
export interface FetchOptions<Platform = unknown> {
  /** The merchant of a request. This is a hint for the resolver. */
  readonly tenant?: ((request: Request, platform: Platform) => string | undefined) | undefined;
  /** The sender's address, for alerts. The platform determines which header or context has it. */
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
  receiver: ReceiverOrFactory<Platform>,
  options: FetchOptions<Platform> = {},
): FetchHandler<Platform> {
  return mount(receiver, "payments", options);
}

/** Receives connected-account webhooks. */
export function connectWebhooks<Platform = unknown>(
  receiver: ReceiverOrFactory<Platform>,
  options: FetchOptions<Platform> = {},
): FetchHandler<Platform> {
  return mount(receiver, "connect", options);
}

/**
 * Receives the webhooks of a source.
 *
 * @throws PayhooksError `ERR_SOURCE_UNKNOWN` when the receiver has no source with this name.
 */
export function webhooks<Mounted extends AnyReceiver, Platform = unknown>(
  receiver: ReceiverOrFactory<Platform, Mounted>,
  source: SourceNameOf<Mounted>,
  options: FetchOptions<Platform> = {},
): FetchHandler<Platform> {
  return mount(receiver, source, options);
}

/**
 * Tells a load balancer or an orchestrator whether the process should keep running: 200 `{"ok":true}`, or 503 once the receiver
 * closes.
 *
 * @example if (pathname === "/live") return live(receiver)(request);
 */
export function live<Platform = unknown>(receiver: ReceiverOrFactory<Platform>): FetchHandler<Platform> {
  const probe = mountProbe(receiver, "live");
  return (_request, platform) => answerProbe(probe, platform as Platform);
}

/**
 * Tells a load balancer whether to send deliveries here: 200 `{"ok":true}`, or 503 with a `code`. It answers 503 while
 * nothing could be accepted, once the receiver closes and, with `maxDueAgeMs`, while an event has been due for longer.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID` for a `maxDueAgeMs` that is not a positive number.
 * @example if (pathname === "/ready") return ready(receiver)(request);
 */
export function ready<Platform = unknown>(
  receiver: ReceiverOrFactory<Platform>,
  options: ReadyOptions = {},
): FetchHandler<Platform> {
  const probe = mountProbe(receiver, "ready", options);
  return (_request, platform) => answerProbe(probe, platform as Platform);
}

const CONSUMED_BODY_FIX =
  "mount it before anything that calls request.json() or request.text(), or pass it a request.clone()";

function mount<Platform>(
  receiverOrFactory: ReceiverOrFactory<Platform>,
  flow: string,
  options: FetchOptions<Platform>,
): FetchHandler<Platform> {
  checkNames(`The mount of ${flow}`, options, { tenant: true, remoteAddress: true });
  const { tenant, remoteAddress } = options;
  const mounted = mountFlow(receiverOrFactory, flow);
  return async (request, platform, context) => {
    const facts = {
      tenant: tenant?.(request, platform as Platform),
      remoteAddress: remoteAddress?.(request, platform as Platform),
      waitUntil: context?.waitUntil?.bind(context),
      fix: CONSUMED_BODY_FIX,
    };
    return answerRequest(mounted, request, facts, platform as Platform);
  };
}
