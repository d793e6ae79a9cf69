/**
 * The whole payment service as a local emulator.
 *
 * @module
 */

export type { Clock } from "./clock.ts";
export { createSandbox } from "./create-sandbox.ts";

export type { Attempt, Delivery } from "./deliveries/delivery.ts";
export type { Faults } from "./faults/faults.ts";
export { FAULT_KINDS, type Fault, type FaultKind, type FaultRule } from "./faults/kinds.ts";
export type { SandboxOptions } from "./options.ts";

export type { Order } from "./payments/order.ts";
export type { Outcome, Script } from "./payments/outcomes.ts";

export type { DeliveryFilter, Sandbox, SandboxDeliveries, SandboxKeys } from "./sandbox.ts";
export { SandboxError, type SandboxErrorCode } from "./sandbox-error.ts";
export type { CheckoutInput, TriggerInput } from "./trigger.ts";
export { STATUSES, type Transaction } from "./wire.ts";
