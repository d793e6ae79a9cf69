import type { IncomingMessage, ServerResponse } from "node:http";
import type { MountedFlow } from "./mount.ts";
import { type KeptBody, nodeHeaders, type ReadOptions, readNodeBody, writeReply } from "./node.ts";
import type { MountedProbe } from "./probe-route.ts";

/**
 * Node's own request. Express, and Fastify's middleware, add the address as it was sent, and the peer's behind trusted proxies.
 */
export type NodeRequest = IncomingMessage & {
  readonly originalUrl?: string;
  readonly ip?: string | undefined;
};

/** A function in the form of Express's handlers: it answers, or passes an error to `next`. */
export type NodeHandler<Request extends NodeRequest = NodeRequest> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** How the requests of a flow are read. */
export interface NodeFlowOptions<Request extends NodeRequest> extends Omit<ReadOptions, "kept"> {
  /** Says which merchant a request is for. */
  readonly tenant?: ((request: Request) => string | undefined) | undefined;
}

/** Answers the requests of a flow. A parser may have kept their bytes on the request. */
export function nodeFlowHandler<Request extends NodeRequest>(
  mountedFlow: MountedFlow,
  { tenant, ...readOptions }: NodeFlowOptions<Request>,
): NodeHandler<Request> {
  return (request, response, next) => {
    mountedFlow
      .answer({
        method: request.method ?? "",
        url: request.originalUrl ?? request.url ?? "",
        headers: nodeHeaders(request),
        remoteAddress: request.ip ?? request.socket.remoteAddress,
        tenant: tenant?.(request),
        readBody: (maxBodyBytes) =>
          readNodeBody(request, maxBodyBytes, { ...readOptions, kept: request as KeptBody }),
      })
      .then((reply) => writeReply(request, response, reply))
      .catch(next);
  };
}

/** Answers a load balancer's requests. */
export function nodeProbeHandler(probe: MountedProbe): NodeHandler {
  return (request, response, next) => {
    probe()
      .then((reply) => writeReply(request, response, reply))
      .catch(next);
  };
}
