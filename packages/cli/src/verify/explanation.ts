/** Why a delivery does not verify, as far as it can be told from the outside. */
export interface Explanation {
  readonly ok: boolean;
  readonly flow: "payments" | "connect";
  /** The code that a receiver would refuse or hold it with; null when it is fine. */
  readonly code: string | null;
  /** What is wrong, in a sentence; with the event's name and id when nothing is. */
  readonly summary: string;
  /** What the signature of a payment callback is made over; null for webhooks, whose signature covers the bytes. */
  readonly canonicalString: string | null;
  /** Fingerprint of the key or secret that matched. */
  readonly keyId: string | null;
  readonly causes: readonly Cause[];
  /** What is worth knowing though it is not the cause. */
  readonly notes: readonly string[];
}

/** A cause and what to do about it. */
export interface Cause {
  readonly what: string;
  readonly fix: string;
  /** The signature was recomputed with this change, and fits. */
  readonly certain: boolean;
}

/** Other bodies that the signature might belong to. */
export interface OtherBody {
  readonly name: string;
  readonly bytes: Buffer;
}

export const HOW_TO_KEEP_BYTES =
  "Keep the bytes as they arrived: read the raw body before any JSON parser, and save it unchanged.";
