/**
 * Receives the payment service's callbacks and webhooks: verified, deduplicated, and not lost once acknowledged.
 *
 * @module
 */

export type { EffectContext } from "./effects/context.ts";
export type { Effects } from "./effects/effects.ts";
export type { ConnectOptions } from "./flows/connect.ts";
export type { KeepOptions } from "./flows/keep-options.ts";
export type { KeyResolver } from "./flows/keyring.ts";
export type { Keys } from "./flows/keys.ts";
export type { LookupTransaction } from "./flows/lookup.ts";
export type { PaymentExpectations, PaymentsOptions } from "./flows/payments-options.ts";
export type { KeySource } from "./flows/refreshing-keyring.ts";
export { type VerifiedDelivery, verifyConnectWebhook, verifyPaymentCallback } from "./flows/verify.ts";
export {
  type Handler,
  type HandlerContext,
  type HandlerOptions,
  type HeldEvent,
  Reject,
  RetryAfter,
} from "./handlers/handler.ts";
export type {
  BulkFilter,
  BulkOptions,
  BulkOutcome,
  BulkReason,
  BulkReport,
  EventSelection,
} from "./inbox/contract/bulk.ts";
export type { AmountRange, EventQuery } from "./inbox/contract/event-query.ts";
export type { EventCounts, EventPage, Events } from "./inbox/contract/events.ts";
export type { Health, Inbox, WorkReport } from "./inbox/contract/inbox.ts";
export type { UnreadableEvents } from "./inbox/contract/unreadable-events.ts";
export type { LeaseView, NamedLease } from "./inbox/named-lease.ts";
export type { RunReport } from "./inbox/record/event.ts";
export type { OtherEvent, StoredEvent } from "./inbox/record/stored-event.ts";
export { type MemoryInboxOptions, memoryInbox } from "./memory/index.ts";
export type { FieldName, ServiceNames, ServiceNamesOptions } from "./names/options.ts";
export { parseServiceNames } from "./names/parse-names.ts";
export { serviceNames } from "./names/service-names.ts";
export type { AlertOptions } from "./notices/delivery-alerts.ts";
export type { Logger, LoggerOption } from "./notices/logger.ts";
export type { Alert, Notice } from "./notices/notice.ts";
export { formatAmount, parseAmount } from "./protocol/amount.ts";
export type { Candidates, ContentField, Contents, SignedPiece } from "./protocol/contents.ts";
export type { Delivery, Reply } from "./protocol/delivery.ts";
export { type ErrorCode, isPayhooksError, PayhooksError } from "./protocol/errors.ts";
export type {
  AnyEvent,
  ConnectEvent,
  ConnectedAccount,
  EventName,
  FlowName,
  PaymentEvent,
  PaymentStatus,
  Settlement,
} from "./protocol/events.ts";
export type { HeldReason } from "./protocol/held-reasons.ts";
export type { JsonObject, JsonValue } from "./protocol/json.ts";
export { createReceiver } from "./receiver/create-receiver.ts";
export type { Instrumentation } from "./receiver/instrumentation.ts";
export type { ReceiverOptions } from "./receiver/options.ts";
export type { AnyReceiver, IngestResult, ReadyOptions, Receiver } from "./receiver/receiver.ts";
export type { Clock } from "./time/clock.ts";
