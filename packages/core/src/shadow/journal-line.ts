import type { FlowName } from "../protocol/events.ts";

/**
 * How the old receiver has treated a delivery. `accepted`: it took the event for new, and handles it. `duplicate`: it
 * took the delivery for a copy, and does nothing. `refused`: it does not want the delivery.
 */
export type OldAnswer = "accepted" | "duplicate" | "refused";

/** An event, as a line of the journal names it. The journal has no other fields of the event. */
export interface EventNames {
  readonly flow: FlowName;
  readonly tenant: string | null;
  /** `payTxnId`, `idempotency_key`, or the id that `read` of a source gives. */
  readonly id: string;
  readonly event: string;
  readonly status: string;
}

/** A line of the journal of a shadow, as JSON. Times are in milliseconds since the epoch. */
export type ShadowLine =
  /** Both receivers had the same delivery. */
  | {
      readonly type: "delivery";
      readonly at: number;
      readonly flow: FlowName;
      /** The beginning of the SHA-256 of the body, in hex, by which it can be found in other records. */
      readonly body: string;
      /** Null: it gave no answer. */
      readonly old: OldAnswer | null;
      /** The answer that Payhooks would have given. */
      readonly status: number;
      readonly outcome: string;
      /** The code of a refusal; null if Payhooks accepted it. */
      readonly code: string | null;
      /** Why Payhooks holds the event; null if it does not. */
      readonly reason: string | null;
      /** Null if Payhooks has recorded nothing. */
      readonly eventId: string | null;
      /** Null if it is not authentic, or if no event can be read from it with certainty. */
      readonly event: EventNames | null;
    }
  /** The old receiver has handled an event. */
  | { readonly type: "handled"; readonly at: number; readonly event: EventNames }
  /**
   * The old receiver has reported an event to Payhooks. `as`: it has handled the event, or taken it for a copy.
   * `state`: the state of the event since then, or null if it could not be recorded. Then Payhooks tries again, and
   * writes another line once that has succeeded.
   */
  | {
      readonly type: "marked";
      readonly at: number;
      readonly as: "handled" | "doubtful";
      readonly event: EventNames;
      readonly eventId: string | null;
      readonly state: string | null;
      /** It is not tried again, because too many others are. */
      readonly dropped?: true;
    };
