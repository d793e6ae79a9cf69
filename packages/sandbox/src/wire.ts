/** The statuses of a transaction (specification, States and transitions). */
export const STATUSES = ["SUCCESS", "FAILED", "PENDING", "CANCELLED"] as const;
export type TransactionStatus = (typeof STATUSES)[number];

/** The mediums of both published lists (specification, POST /api/v2/payment/direct). */
export const MEDIUMS = [
  "MPESA",
  "TELEBIRR",
  "CBE",
  "ETHSWITCH",
  "CYBERSOURCE",
  "OROMIA_BANK",
  "AWASH",
  "PAY",
] as const;
export type Medium = (typeof MEDIUMS)[number];

export const CURRENCIES = ["ETB", "USD"] as const;
export type Currency = (typeof CURRENCIES)[number];

/** The kind of a transaction. It is `type` in look-ups and `event` in callbacks. */
export type TransactionType = "DEPOSIT" | "WITHDRAWAL";

/** A transaction as both look-ups return it (specification, Transaction). */
export interface Transaction {
  readonly id: string;
  readonly merchant_id: string;
  /** With a space after the country code, as the service shows it. */
  readonly phone_number: string;
  readonly reference: string;
  readonly type: TransactionType;
  /** Empty for a checkout whose customer has not chosen yet. */
  readonly medium: string;
  readonly message: string;
  readonly details: { readonly RawMessage: string | null; readonly Valid: boolean };
  readonly status: TransactionStatus;
  readonly base_amount: number;
  readonly callback_url: string;
  readonly success_url: string;
  readonly failed_url: string;
  /** True once a callback for it was answered with 2xx. */
  readonly webhook_received: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

/** The settings of the connected-account webhooks (specification, Connected-account webhook settings). */
export interface WebhookSettings {
  readonly webhook_url: string | null;
  readonly webhook_secret: string | null;
  readonly webhook_enabled: boolean;
}

export type Decision = "approved" | "declined";

/** A connected account, as events show it (specification, Connected account). */
export interface ConnectedAccount {
  readonly object: "connected_account";
  readonly id: string;
  readonly master_merchant_id: string;
  readonly kyc_status: "pending" | Decision;
}

/** A settlement, as events show it (specification, Settlement). */
export interface Settlement {
  readonly object: "settlement";
  readonly id: string;
  readonly connected_account_id: string;
  readonly amount: number;
  readonly status: "pending" | Decision;
}

/** The event names of the connected-account webhooks. */
export type ConnectEventName = `connected_account.${Decision}` | `settlement.${Decision}`;

/** Every event that is sent. */
export const EVENTS: readonly (TransactionType | ConnectEventName)[] = [
  "DEPOSIT",
  "WITHDRAWAL",
  "connected_account.approved",
  "connected_account.declined",
  "settlement.approved",
  "settlement.declined",
];

/** The envelope of every connected-account webhook (specification, Connected-account events). */
export interface ConnectWebhook {
  readonly event: ConnectEventName;
  readonly idempotency_key: string;
  readonly occurred_at: string;
  readonly data: ConnectedAccount | Settlement;
}
