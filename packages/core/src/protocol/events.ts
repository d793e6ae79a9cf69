import type { JsonObject } from "./json.ts";

/*
 * Every event is one row of EVENTS. Its type, its method on a receiver, what the flow checks, and what the builders of tests write
 * follow from the row.
 */

/**
 * The members of a webhook's `data` besides `object`, each with an example. A text is never empty, and a number is a
 * safe integer. A test builder puts a new id in the place of each `_1`, and the decision in the place of `approved`.
 */
export const OBJECT_MEMBERS = {
  /** A connected account (specification, Connected account). */
  connected_account: { id: "cm_1", master_merchant_id: "mm_1", kyc_status: "approved" },
  /** A settlement (specification, Settlement). */
  settlement: {
    id: "wd_1",
    connected_account_id: "cm_1",
    /** The specification does not name its unit. */
    amount: 125_000,
    status: "approved",
  },
};

/** The events of the specification, in its order, by the method of a receiver that registers a handler. */
export const EVENTS = {
  /**
   * Registers a handler of `DEPOSIT`. A function runs on SUCCESS only. An object has a function for each status that is wanted
   * (specification, Payment callback events). An event with another status is acknowledged, and counts as done.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onDeposit: { name: "DEPOSIT", flow: "payments" },
  /**
   * Registers a handler of `WITHDRAWAL`, in the same way as `onDeposit`.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onWithdrawal: { name: "WITHDRAWAL", flow: "payments" },
  /**
   * Registers a handler of `connected_account.approved`: the service approved the KYC of a connected merchant
   * (specification, Connected-account events).
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onConnectedAccountApproved: {
    name: "connected_account.approved",
    flow: "connect",
    object: "connected_account",
  },
  /**
   * Registers a handler of `connected_account.declined`: the service declined the KYC of a connected merchant.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onConnectedAccountDeclined: {
    name: "connected_account.declined",
    flow: "connect",
    object: "connected_account",
  },
  /**
   * Registers a handler of `settlement.approved`. The service does not send settlement events yet (specification,
   * Connected-account events).
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onSettlementApproved: { name: "settlement.approved", flow: "connect", object: "settlement" },
  /**
   * Registers a handler of `settlement.declined`. The service does not send settlement events yet.
   * @throws PayhooksError `ERR_OPTION_INVALID`, `ERR_HANDLER_NAME`, `ERR_HANDLER_DUPLICATE`, `ERR_REGISTRATION_CLOSED`.
   */
  onSettlementDeclined: { name: "settlement.declined", flow: "connect", object: "settlement" },
} as const;

interface PaymentRow {
  readonly name: string;
  readonly flow: "payments";
}

interface ConnectRow {
  readonly name: string;
  readonly flow: "connect";
  /** The kind of its `data`. */
  readonly object: keyof typeof OBJECT_MEMBERS;
}

/** The row of an event. */
type Row = (typeof EVENTS)[keyof typeof EVENTS];

/** The methods of a receiver that register handlers of the specification's events. */
export type EventMethod = keyof typeof EVENTS;

/** The name of the event whose handlers a method of a receiver registers. */
export type EventNamed<Method extends EventMethod> = (typeof EVENTS)[Method]["name"];

/** The event names of the specification. */
export type EventName = Row["name"];

/** The service's two independent flows (specification, Events). */
export type ServiceFlow = Row["flow"];

/** The origin of an event: one of the service's two flows, or the name of a source. */
export type FlowName = ServiceFlow | (string & {});

/** The service's flows. */
export const FLOWS: Readonly<Record<ServiceFlow, true>> = { payments: true, connect: true };

const FLOW_NAME_PATTERN = /^[a-z][a-z0-9-]{0,31}$/;

/** True if a text can be the name of a flow: 32 lowercase letters, digits and `-` at most, of which the first is a letter. */
export function isFlowName(text: unknown): text is FlowName {
  return typeof text === "string" && FLOW_NAME_PATTERN.test(text);
}

const ROW_BY_NAME: ReadonlyMap<string, Row & (PaymentRow | ConnectRow)> = new Map(
  Object.values(EVENTS).map((row) => [row.name, row]),
);

/** The event names of a flow, in the specification's order. */
export function eventNamesOf(flow: string): readonly EventName[] {
  return [...ROW_BY_NAME.values()].filter((row) => row.flow === flow).map(({ name }) => name);
}

/** The flow of a listed event; null for any other text. */
export function flowOfEvent(name: string): ServiceFlow | null {
  return ROW_BY_NAME.get(name)?.flow ?? null;
}

/** The kind of the `data` of a listed webhook; null for any other text. */
export function objectOfEvent(name: string): keyof typeof OBJECT_MEMBERS | null {
  const row = ROW_BY_NAME.get(name);
  return row?.flow === "connect" ? row.object : null;
}

/** Statuses of payment callbacks (specification, States and transitions). */
export type PaymentStatus = "SUCCESS" | "FAILED" | "PENDING";

/** How a payment event arrived: by a signed callback, or by a look-up of the merchant's own client. */
export type PaymentArrival = "callback" | "lookup";

/** The fields of a payment callback (specification, Payment callback events), verified, frozen, without a prototype. */
interface PaymentFields<Event extends string, Status extends string> {
  readonly event: Event;
  readonly status: Status;
  /** The word that stood in the callback, if `names.callback.statuses` gives it another meaning, such as `CANCELLED`. */
  readonly wireStatus?: string;
  /** The merchant's own reference. */
  readonly referenceId: string;
  /** The service's transaction id, by which payment events are deduplicated. */
  readonly payTxnId: string;
  /** Decimal string with up to six decimals; `parseAmount` reads it. The event has no currency: compare it with your order. */
  readonly amount: string;
  /** Empty for an event that has none. */
  readonly callbackUrl: string;
  /** Like the other optional fields, it is absent when it is null, missing, or not certain (docs/concepts/security.md). */
  readonly message?: string;
  readonly providerTxId?: string;
  /** ISO 8601 with its zone, as the service wrote it. `Date.parse` reads it if it is in UTC, as the specification says. */
  readonly timestamp: string;
  readonly merchantId?: string;
  readonly userId?: string;
  /**
   * The fields that `names.callback.extra` declares and that are certain, as text. A number or a boolean is as it was written.
   */
  readonly extra: Readonly<Record<string, string>>;
  readonly arrivedBy: PaymentArrival;
}

/** An event of the payments flow: `PaymentEvent<"DEPOSIT">`, in one of three statuses. */
export type PaymentEvent<Name extends NameOf<"payments"> = NameOf<"payments">> = {
  [Each in Name]: { [Status in PaymentStatus]: PaymentFields<Each, Status> }[PaymentStatus];
}[Name];

type NameOf<Flow extends ServiceFlow> = Extract<Row, { readonly flow: Flow }>["name"];

/** The data of a webhook, by its `object`. */
type DataOf<Kind extends keyof typeof OBJECT_MEMBERS> = { readonly object: Kind } & {
  readonly [Member in keyof (typeof OBJECT_MEMBERS)[Kind]]: (typeof OBJECT_MEMBERS)[Kind][Member];
} & { readonly extra: JsonObject };

/** A connected account, as event data (specification, Connected account). */
export type ConnectedAccount = DataOf<"connected_account">;

/** A settlement, as event data (specification, Settlement). Its `amount` is a safe integer. */
export type Settlement = DataOf<"settlement">;

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

type ObjectOf<Name extends NameOf<"connect">> = Extract<
  Row,
  { readonly name: Name; readonly flow: "connect" }
>["object"];

/** An event of the connect flow: `ConnectEvent<"settlement.approved">`. */
export type ConnectEvent<Name extends NameOf<"connect"> = NameOf<"connect">> = {
  [Each in Name]: ConnectEnvelope<Each, DataOf<ObjectOf<Each>>>;
}[Name];

/** An event of a source. */
export interface SourceEvent<Flow extends string = string, Name extends string = string, Data = unknown> {
  /** The name of the source. */
  readonly flow: Flow;
  readonly event: Name;
  /** The id that copies share. */
  readonly id: string;
  readonly data: Data;
  /** One of the source's `stages`; empty without them. */
  readonly status: string;
  readonly reference: string | null;
  readonly occurredAt: Date | null;
  readonly signedAt: Date | null;
  /** The header fields that are kept: those that the signature covers, that `read` asked for, and `keepHeaders`. */
  readonly headers: Readonly<Record<string, string>>;
  /** False only with `unsafeUnsigned`. */
  readonly authenticated: boolean;
}

/** Any event that a handler can be registered for. */
export type AnyEvent = PaymentEvent | ConnectEvent;

/** The event type of a name: `EventOf<"settlement.approved">`. */
export type EventOf<Name extends EventName> = Extract<AnyEvent, { readonly event: Name }>;

/** The rank of each listed status. A terminal status follows PENDING, never the other way round. */
export const STATUS_RANK: Readonly<Record<PaymentStatus, 0 | 1>> = { PENDING: 0, SUCCESS: 1, FAILED: 1 };
