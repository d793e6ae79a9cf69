/** Explains whether a delivery verifies and, if not, the likely causes. */
export interface Explanation {
  readonly ok: boolean;
  readonly flow: "payments" | "connect";
  /** The code with which a receiver would refuse or hold it. Null if it verifies. */
  readonly code: string | null;
  /** The fault in one sentence. If there is none, the name and the id of the event. */
  readonly summary: string;
  /** The text that the signature of a payment callback covers. Null for webhooks, whose signature covers the bytes. */
  readonly canonicalString: string | null;
  /** The fingerprint of the key or secret that matched. */
  readonly keyId: string | null;
  readonly causes: readonly Cause[];
  /** Facts that are worth knowing and are not the cause. */
  readonly notes: readonly string[];
}

/** A cause and what to do about it. */
export interface Cause {
  readonly what: string;
  readonly fix: string;
  /** True if the signature was recomputed with this change and fits. */
  readonly certain: boolean;
}

/** Another body that the signature might belong to. */
export interface OtherBody {
  readonly name: string;
  readonly bytes: Buffer;
}

export const HOW_TO_KEEP_BYTES =
  "Keep the bytes as they arrived: read the raw body before any JSON parser, and save it unchanged.";
