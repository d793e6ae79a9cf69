/**
 * The whole payment service as a local emulator.
 *
 * @module
 */
export type { Clock } from "./clock.ts";
export { createSandbox } from "./create-sandbox.ts";
export type { RetryOptions } from "./deliveries/backoff.ts";
export type { Attempt, Delivery, DeliveryState } from "./deliveries/delivery.ts";
export type { Faults } from "./faults/faults.ts";
export { FAULT_KINDS, type Fault, type FaultKind, type FaultRule, type Flow } from "./faults/kinds.ts";
export type { SandboxOptions } from "./options.ts";
export { MAGIC_OUTCOMES, type MagicOutcome } from "./payments/magic.ts";
export type { Order } from "./payments/order.ts";
export type { Outcome, Script, ScriptMatch, Step } from "./payments/outcomes.ts";
export type { ComingStep, StatusEntry, TransactionRecord } from "./payments/transactions.ts";
export type { DeliveryFilter, Sandbox, SandboxDeliveries, SandboxKeys } from "./sandbox.ts";
export { type Problem, SandboxError, type SandboxErrorCode } from "./sandbox-error.ts";
export type { CheckoutInput, TriggerInput } from "./trigger.ts";
export {
  type ConnectEventName,
  type ConnectedAccount,
  type ConnectWebhook,
  CURRENCIES,
  type Currency,
  type Decision,
  MEDIUMS,
  type Medium,
  type Settlement,
  STATUSES,
  type Transaction,
  type TransactionStatus,
  type TransactionType,
  type WebhookSettings,
} from "./wire.ts";
