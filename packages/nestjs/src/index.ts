/**
 * A module for NestJS: a receiver whose handlers are methods of providers, on the platforms Express and Fastify.
 *
 * @module
 */

export type { NodeRequest } from "@payhooks/core/adapter";
export {
  type ConnectDecorator,
  type HandlerDecorator,
  type MethodOptions,
  OnConnectedAccountApproved,
  OnConnectedAccountDeclined,
  OnDeposit,
  OnEvent,
  OnHeld,
  OnSettlementApproved,
  OnSettlementDeclined,
  OnWithdrawal,
  type PaymentDecorator,
  type PaymentMethodOptions,
} from "./decorators.ts";
export { type HealthResult, PayhooksHealthIndicator } from "./health.ts";
export {
  InjectReceiver,
  type PayhooksFactoryOptions,
  PayhooksModule,
  type PayhooksModuleAsyncOptions,
  type PayhooksModuleOptions,
  receiverToken,
} from "./module.ts";
export type { Mounts, ProbePaths } from "./mount.ts";
