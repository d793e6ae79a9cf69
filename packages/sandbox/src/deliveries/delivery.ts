import type { FaultKind, Flow } from "../faults/kinds.ts";

/**
 * The state of a delivery: waiting for its first attempt, being sent, waiting for the next attempt, acknowledged with
 * 2xx, or given up after the last attempt.
 */
export type DeliveryState = "scheduled" | "sending" | "retrying" | "delivered" | "gave-up";

/** One attempt, as the dispatch log keeps it (specification, Delivery rules 2). */
export interface Attempt {
  /** Counts from 1. */
  readonly number: number;
  /** ISO 8601. */
  readonly at: string;
  readonly url: string;
  /** The request headers that were sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact body that was sent. */
  readonly body: string;
  /** The text that the signature covers. Null for webhooks, whose signature covers the body. */
  readonly canonicalString: string | null;
  /** The signature in the body or the header. Null for a webhook if no secret is set. */
  readonly signature: string | null;
  /** The fingerprint of the RSA key. Null for webhooks. */
  readonly keyId: string | null;
  /** The receiver's answer. Null if none came. */
  readonly answer: { readonly status: number; readonly bodyExcerpt: string } | null;
  /** Why no answer came, or why the answer does not count. */
  readonly error: string | null;
  readonly acknowledged: boolean;
  readonly durationMs: number;
  readonly faults: readonly FaultKind[];
}

/** One event on its way to one address, with all attempts. It is an entry of the dispatch log. */
export interface Delivery {
  readonly id: string;
  readonly flow: Flow;
  readonly event: string;
  /** The `payTxnId` or `idempotency_key`, by which the receiver deduplicates. */
  readonly deduplicationKey: string;
  /** The merchant's reference. Null for webhooks. */
  readonly reference: string | null;
  /** The status in the callback, or the decision in the webhook. */
  readonly status: string;
  readonly url: string;
  readonly state: DeliveryState;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601. Null if no further attempt is planned. */
  readonly nextAttemptAt: string | null;
  /** The id of the delivery that this one repeats, or null. */
  readonly replayOf: string | null;
  readonly attempts: readonly Attempt[];
}

/** The content of a delivery: the fields of a callback, or the envelope of a webhook. */
export type Message =
  | { readonly flow: "payments"; readonly fields: Readonly<Record<string, string | null>> }
  | { readonly flow: "connect"; readonly envelope: Readonly<Record<string, unknown>> };

/** The exact bytes of a delivery, and their signature. */
export interface SignedMessage {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly canonicalString: string | null;
  readonly signature: string | null;
  readonly keyId: string | null;
}

/** A delivery, with all that is needed to send it again. */
export interface DeliveryRecord extends Delivery {
  /** The position in the log since the last reset, from 1. The random draws for webhooks depend on it. */
  readonly sequence: number;
  readonly message: Message;
  readonly signed: SignedMessage;
  /** Milliseconds since the epoch. */
  readonly dueAt: number | null;
}

/** A delivery that is not in the log yet. */
export type NewDelivery = Pick<
  Delivery,
  "flow" | "event" | "deduplicationKey" | "reference" | "status" | "url"
> & { readonly message: Message };
