import type { IncomingMessage, ServerResponse } from "node:http";
import type { ReadyOptions } from "@payhooks/core";
import {
  type AnyReceiver,
  type KeptBody,
  mountFlow,
  mountProbe,
  nodeHeaders,
  readNodeBody,
  writeReply,
} from "@payhooks/core/adapter";
import getRawBody from "raw-body";

/**
 * Node's own request. Express, and Fastify's middleware, add the address as it was sent, and the peer's behind trusted proxies.
 */
export type NodeRequest = IncomingMessage & { readonly originalUrl?: string; readonly ip?: string };

/** The paths at which a receiver is mounted. The application's global prefix and versions do not apply. */
export interface Mounts {
  /** The path of each flow: of `payments`, of `connect`, and of sources by their names. */
  readonly paths?: Readonly<Record<string, string>> | undefined;
  /** The paths of the probes for load balancers, and what `ready` takes. */
  readonly probes?: ProbePaths | undefined;
  /** Says which merchant a request is for. The key resolver gets it as a hint. */
  readonly tenant?: ((request: NodeRequest) => string | undefined) | undefined;
}

/** Paths of probes. */
export interface ProbePaths extends ReadyOptions {
  readonly live?: string | undefined;
  readonly ready?: string | undefined;
}

/** The form in which both platforms of NestJS call a function that is mounted at a path. */
type NodeHandler = (request: NodeRequest, response: ServerResponse, next: (error?: unknown) => void) => void;

/**
 * The part of NestJS's HTTP adapters that mounts functions at a path, on Express before its parsers if they are not there yet.
 */
export interface HttpAdapter {
  use(path: string, handler: NodeHandler): unknown;
}

const RAW_BODY_FIX =
  "create the application with NestFactory.create, or give createNestApplication { rawBody: true }, because a testing module has its body parsers first";

/**
 * Mounts a receiver at its paths.
 *
 * @throws PayhooksError `ERR_FLOW_OFF`, `ERR_SOURCE_UNKNOWN` for a flow that the receiver does not have, `ERR_OPTION_INVALID`.
 */
export function mount(receiver: AnyReceiver, adapter: HttpAdapter, options: Mounts): void {
  const { paths = {}, probes: { live, ready, ...readyOptions } = {}, tenant } = options;
  for (const [flow, path] of Object.entries(paths)) adapter.use(path, flowHandler(receiver, flow, tenant));
  if (live !== undefined) adapter.use(live, probeHandler(mountProbe(receiver, "live")));
  if (ready !== undefined) adapter.use(ready, probeHandler(mountProbe(receiver, "ready", readyOptions)));
}

function flowHandler(receiver: AnyReceiver, flow: string, tenant: Mounts["tenant"]): NodeHandler {
  const mountedFlow = mountFlow(receiver, flow);
  return (request, response, next) => {
    mountedFlow
      .answer({
        method: request.method ?? "",
        url: request.originalUrl ?? request.url ?? "",
        headers: nodeHeaders(request),
        remoteAddress: request.ip ?? request.socket.remoteAddress,
        tenant: tenant?.(request),
        readBody: (maxBodyBytes) =>
          readNodeBody(request, maxBodyBytes, {
            read: getRawBody,
            kept: request as KeptBody,
            fix: RAW_BODY_FIX,
          }),
      })
      .then((reply) => writeReply(request, response, reply))
      .catch(next);
  };
}

function probeHandler(probe: ReturnType<typeof mountProbe<void>>): NodeHandler {
  return (request, response, next) => {
    probe()
      .then((reply) => writeReply(request, response, reply))
      .catch(next);
  };
}
