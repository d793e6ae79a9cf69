import type { FaultKind, Flow } from "../faults/kinds.ts";

/**
 * Where a delivery stands: waiting for its first attempt, being sent, waiting for the next attempt, acknowledged
 * with 2xx, or given up after the last attempt.
 */
export type DeliveryState = "scheduled" | "sending" | "retrying" | "delivered" | "gave-up";

/** One attempt, as the dispatch log keeps it (specification, Delivery rules 2). */
export interface Attempt {
  /** Counts from 1. */
  readonly number: number;
  /** ISO 8601. */
  readonly at: string;
  readonly url: string;
  /** Request headers as sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact body sent. */
  readonly body: string;
  /** What the signature covers; null for webhooks, whose signature covers the body. */
  readonly canonicalString: string | null;
  /** As in the body or the header; null for a webhook without secret. */
  readonly signature: string | null;
  /** Fingerprint of the RSA key; null for webhooks. */
  readonly keyId: string | null;
  /** The receiver's answer; null when none came. */
  readonly answer: { readonly status: number; readonly bodyExcerpt: string } | null;
  /** Why no answer came, or why the answer does not count. */
  readonly error: string | null;
  readonly acknowledged: boolean;
  readonly durationMs: number;
  readonly faults: readonly FaultKind[];
}

/** One event on its way to one address, with every attempt: an entry of the dispatch log. */
export interface Delivery {
  readonly id: string;
  readonly flow: Flow;
  readonly event: string;
  /** `payTxnId` or `idempotency_key`: what the receiver deduplicates on. */
  readonly deduplicationKey: string;
  /** The merchant's reference; null for webhooks. */
  readonly reference: string | null;
  /** Status of the callback, or the decision of the webhook. */
  readonly status: string;
  readonly url: string;
  readonly state: DeliveryState;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601; null when nothing more will be sent. */
  readonly nextAttemptAt: string | null;
  /** The delivery that this one repeats. */
  readonly replayOf: string | null;
  readonly attempts: readonly Attempt[];
}

/** What is to be sent: the fields of a callback, or the envelope of a webhook. */
export type Message =
  | { readonly flow: "payments"; readonly fields: Readonly<Record<string, string | null>> }
  | { readonly flow: "connect"; readonly envelope: Readonly<Record<string, unknown>> };

/** The exact bytes of a delivery and what is known about their signature. */
export interface SignedMessage {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly canonicalString: string | null;
  readonly signature: string | null;
  readonly keyId: string | null;
}

/** A delivery and what is needed to send it again. */
export interface DeliveryRecord extends Delivery {
  /** Position in the log since the last reset, from 1; what random draws are keyed by for webhooks. */
  readonly sequence: number;
  readonly message: Message;
  readonly signed: SignedMessage;
  /** Milliseconds since the epoch. */
  readonly dueAt: number | null;
}

/** What is to be delivered. */
export type NewDelivery = Pick<
  Delivery,
  "flow" | "event" | "deduplicationKey" | "reference" | "status" | "url"
> & { readonly message: Message };
