/**
 * Receives the payment service's callbacks and webhooks: verified, deduplicated, and not lost once acknowledged.
 *
 * @module
 */
export type { AlertOptions } from "./alerts.ts";
export { formatAmount, parseAmount } from "./amount.ts";
export type { Clock } from "./clock.ts";
export type { Delivery, DeliveryHead, Reply } from "./delivery.ts";
export {
  type DeliveryErrorCode,
  type ErrorCode,
  isPayhooksError,
  PayhooksError,
  type SetupErrorCode,
  type UsageErrorCode,
  type VerificationErrorCode,
} from "./errors.ts";
export type {
  AnyEvent,
  ConnectEvent,
  ConnectedAccount,
  ConnectedAccountApprovedEvent,
  ConnectedAccountDeclinedEvent,
  DepositEvent,
  EventName,
  EventOf,
  FlowName,
  PaymentEvent,
  PaymentSource,
  PaymentStatus,
  Settlement,
  SettlementApprovedEvent,
  SettlementDeclinedEvent,
  WithdrawalEvent,
} from "./events.ts";
export type { ConnectOptions } from "./flows/connect.ts";
export type { KeyHint, KeyResolver, ResolveOptions, TenantKeys } from "./flows/keyring.ts";
export type { LookupTransaction } from "./flows/lookup.ts";
export type {
  AmbiguousCallback,
  Confirmation,
  PaymentExpectations,
  PaymentsOptions,
} from "./flows/payments-options.ts";
export {
  type Handler,
  type HandlerContext,
  type HandlerOptions,
  type HandlersByStatus,
  type HeldEvent,
  type PaymentHandlers,
  Reject,
  RetryAfter,
} from "./handlers.ts";
export type {
  AcceptOutcome,
  Decision,
  Health,
  Held,
  HeldEntries,
  HeldFilter,
  HeldReason,
  Inbox,
  Life,
  ReplayDecision,
  RunReport,
  SlotState,
  WorkReport,
} from "./inbox/inbox.ts";
export { type MemoryInboxOptions, memoryInbox } from "./inbox/memory/index.ts";
export type { Endpoint } from "./intake.ts";
export type { JsonObject, JsonValue } from "./json.ts";
export type { LogLevel } from "./log-lines.ts";
export type { Alert, EventFacts, Logger, Notice } from "./notices.ts";
export type { ReceiverOptions } from "./options.ts";
export { createReceiver, type Ingested, type PaymentsEndpoint, type Receiver } from "./receiver.ts";
export type { OneOrMore, PublicKeyInput, PublicKeySource, SecretInput } from "./signature/keys.ts";
export {
  type VerifiedDelivery,
  type VerifyConnectOptions,
  type VerifyPaymentOptions,
  verifyConnectWebhook,
  verifyPaymentCallback,
} from "./verify.ts";
