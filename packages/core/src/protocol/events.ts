import type { JsonObject } from "./json.ts";

/** The service's two independent flows (specification, Events). */
export type FlowName = "payments" | "connect";

/** Every flow. */
export const FLOWS: Readonly<Record<FlowName, true>> = { payments: true, connect: true };

/** Statuses of payment callbacks (specification, States and transitions). */
export type PaymentStatus = "SUCCESS" | "FAILED" | "PENDING";

/** Where a payment event came from: a signed callback, or a look-up by the merchant's own client. */
export type PaymentSource = "callback" | "lookup";

/** The fields of a payment callback (specification, Payment callback events), verified, frozen, without a prototype. */
interface PaymentFields<Event extends string, Status extends string> {
  readonly event: Event;
  readonly status: Status;
  /** The merchant's own reference. */
  readonly referenceId: string;
  /** The service's transaction id, by which payment events are deduplicated. */
  readonly payTxnId: string;
  /** Decimal string with up to six decimals; `parseAmount` reads it. The event has no currency: compare it with your order. */
  readonly amount: string;
  readonly callbackUrl: string;
  /** Like the other optional fields, it is absent when it is null, missing, or not certain (docs/concepts/security.md). */
  readonly message?: string;
  readonly providerTxId?: string;
  /** ISO 8601 with its zone, as the service wrote it. `Date.parse` reads it if it is in UTC, as the specification says. */
  readonly timestamp: string;
  readonly merchantId?: string;
  readonly userId?: string;
  /** The fields that `payments.extraFields` declares and that are certain, as text. A number or a boolean is as it was written. */
  readonly extra: Readonly<Record<string, string>>;
  readonly source: PaymentSource;
}

type OfStatus<Event extends string> =
  | PaymentFields<Event, "SUCCESS">
  | PaymentFields<Event, "FAILED">
  | PaymentFields<Event, "PENDING">;

/** A payment or deposit, in one of three statuses. */
export type DepositEvent = OfStatus<"DEPOSIT">;
/** A withdrawal, in one of three statuses. */
export type WithdrawalEvent = OfStatus<"WITHDRAWAL">;
/** An event of the payments flow. */
export type PaymentEvent = DepositEvent | WithdrawalEvent;

/** A connected account, as event data (specification, Connected account). */
export interface ConnectedAccount {
  readonly object: "connected_account";
  readonly id: string;
  readonly master_merchant_id: string;
  readonly kyc_status: string;
  readonly extra: JsonObject;
}

/** A settlement, as event data (specification, Settlement). */
export interface Settlement {
  readonly object: "settlement";
  readonly id: string;
  readonly connected_account_id: string;
  /** A safe integer. The specification does not name its unit. */
  readonly amount: number;
  readonly status: string;
  readonly extra: JsonObject;
}

/** The envelope of a connected-account webhook (specification, Connected-account events). */
interface ConnectEnvelope<Event extends string, Data> {
  readonly event: Event;
  readonly idempotency_key: string;
  /** ISO 8601 with its zone, as the service wrote it. */
  readonly occurred_at: string;
  readonly data: Data;
  /** Undocumented members of the envelope. */
  readonly extra: JsonObject;
  /** False only with `connect.unsafeAllowUnsigned`. */
  readonly authenticated: boolean;
}

/** KYC of a connected merchant approved (specification, Connected-account events). */
export type ConnectedAccountApprovedEvent = ConnectEnvelope<"connected_account.approved", ConnectedAccount>;
/** KYC of a connected merchant declined (specification, Connected-account events). */
export type ConnectedAccountDeclinedEvent = ConnectEnvelope<"connected_account.declined", ConnectedAccount>;
/** A settlement approved (specification, Connected-account events). */
export type SettlementApprovedEvent = ConnectEnvelope<"settlement.approved", Settlement>;
/** A settlement declined (specification, Connected-account events). */
export type SettlementDeclinedEvent = ConnectEnvelope<"settlement.declined", Settlement>;

/** An event of the connect flow. */
export type ConnectEvent =
  | ConnectedAccountApprovedEvent
  | ConnectedAccountDeclinedEvent
  | SettlementApprovedEvent
  | SettlementDeclinedEvent;

/** Any event that a handler can be registered for. */
export type AnyEvent = PaymentEvent | ConnectEvent;

/** The event names of the specification. */
export type EventName = AnyEvent["event"];

/** The event type of a name: `EventOf<"settlement.approved">`. */
export type EventOf<Name extends EventName> = Extract<AnyEvent, { readonly event: Name }>;

/** Event names by flow, in the specification's order. */
export const EVENT_NAMES: {
  readonly payments: readonly PaymentEvent["event"][];
  readonly connect: readonly ConnectEvent["event"][];
} = {
  payments: ["DEPOSIT", "WITHDRAWAL"],
  connect: [
    "connected_account.approved",
    "connected_account.declined",
    "settlement.approved",
    "settlement.declined",
  ],
};

/** The rank of each listed status. A terminal status follows PENDING, never the other way round. */
export const STATUS_RANK: Readonly<Record<PaymentStatus, 0 | 1>> = { PENDING: 0, SUCCESS: 1, FAILED: 1 };
