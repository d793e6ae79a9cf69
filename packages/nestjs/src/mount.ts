import type { ReadyOptions } from "@payhooks/core";
import {
  type AnyReceiver,
  mountFlow,
  mountProbe,
  type NodeHandler,
  type NodeRequest,
  nodeFlowHandler,
  nodeProbeHandler,
} from "@payhooks/core/adapter";
import getRawBody from "raw-body";

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
  const flowOptions = { tenant, read: getRawBody, fix: RAW_BODY_FIX };
  for (const [flow, path] of Object.entries(paths))
    adapter.use(path, nodeFlowHandler(mountFlow(receiver, flow), flowOptions));
  if (live !== undefined) adapter.use(live, nodeProbeHandler(mountProbe(receiver, "live")));
  if (ready !== undefined) adapter.use(ready, nodeProbeHandler(mountProbe(receiver, "ready", readyOptions)));
}
