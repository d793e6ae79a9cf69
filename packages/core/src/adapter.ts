/**
 * For authors of adapters: the parts that all adapters share. An adapter itself only translates.
 *
 * @module
 */

export { mountFlow, type ReceiverOrFactory, receiverOf } from "./http/mount.ts";
export { type KeptBody, nodeHeaders, readNodeBody, writeReply } from "./http/node.ts";
export {
  type NodeFlowOptions,
  type NodeHandler,
  type NodeRequest,
  nodeFlowHandler,
  nodeProbeHandler,
} from "./http/node-handler.ts";
export { answerProbe, mountProbe } from "./http/probe-route.ts";
export { type SharedReceiver, sharedReceiver } from "./http/shared-receiver.ts";
export { answerRequest } from "./http/web.ts";
export { answerWork, type WorkRouteOptions } from "./http/work-route.ts";
export { checkNames } from "./protocol/check-names.ts";
export { isSetupError } from "./protocol/errors.ts";
export type { EventMethod, EventNamed, EventOf } from "./protocol/events.ts";
export type { Endpoint } from "./receiver/endpoint.ts";
export type { AnyReceiver, SourceNameOf } from "./receiver/receiver.ts";
