import type { ConnectEventName, TransactionType } from "../wire.ts";

/** The kinds of faults. */
export type FaultKind =
  | "duplicate"
  | "delay"
  | "reorder"
  | "drop-answer"
  | "bad-signature"
  | "wrong-key"
  | "stale-timestamp"
  | "extra-field"
  | "reset"
  | "resplit"
  | "api-error"
  | "api-reset"
  | "api-drop-answer"
  | "api-delay";

/** The effect of each fault, in the words of the dashboard and the documentation. */
export const FAULT_KINDS: Readonly<
  Record<FaultKind, { readonly scope: "delivery" | "api"; readonly does: string }>
> = {
  duplicate: { scope: "delivery", does: "sends the delivery twice at the same time" },
  delay: { scope: "delivery", does: "waits before sending (`delayMs`, 2 s)" },
  reorder: {
    scope: "delivery",
    does: "holds the delivery back until a later one is sent (at most `delayMs`, 5 s)",
  },
  "drop-answer": {
    scope: "delivery",
    does: "loses the receiver's answer: the delivery fails, and is sent again",
  },
  "bad-signature": { scope: "delivery", does: "changes one byte of the signature" },
  "wrong-key": { scope: "delivery", does: "signs with a key or secret that is not the merchant's" },
  "stale-timestamp": {
    scope: "delivery",
    does: "dates the event back (`ageMs`, 30 days), with a valid signature",
  },
  "extra-field": { scope: "delivery", does: "adds an undocumented field, covered by the signature" },
  reset: { scope: "delivery", does: "resets the connection in the middle of the body" },
  resplit: {
    scope: "delivery",
    does: "makes the payment fail, and sends a forged SUCCESS that reuses the valid signature of the FAILED callback",
  },
  "api-error": { scope: "api", does: "answers 500 and does nothing" },
  "api-reset": { scope: "api", does: "resets the connection and does nothing" },
  "api-drop-answer": { scope: "api", does: "carries out the call, then resets the connection" },
  "api-delay": { scope: "api", does: "waits before answering (`delayMs`, 2 s)" },
};

export const FLOWS = ["payments", "connect"] as const;
export type Flow = (typeof FLOWS)[number];

/** A fault to add. Without `times` and `rate` it happens once. */
export interface FaultRule {
  readonly kind: FaultKind;
  /** How often it happens before it is used up. Default: once, or for ever if `rate` is given. */
  readonly times?: number | undefined;
  /** The share of attempts or calls, from 0 to 1, that it happens to. The sandbox's seed decides which. Default: 1. */
  readonly rate?: number | undefined;
  /** It happens only to deliveries of this flow. */
  readonly flow?: Flow | undefined;
  /** It happens only to deliveries of this event. */
  readonly event?: TransactionType | ConnectEventName | undefined;
  /** It happens only to deliveries and calls with this reference. */
  readonly reference?: string | undefined;
  /** It happens only to calls whose path contains this text, such as `/withdrawal`. */
  readonly path?: string | undefined;
  /** For `delay`, `reorder` and `api-delay`. */
  readonly delayMs?: number | undefined;
  /** For `stale-timestamp`. */
  readonly ageMs?: number | undefined;
  /** For `extra-field`. Any name but `signature`. Default: `channel` with the value `sandbox`. */
  readonly field?: { readonly name: string; readonly value: string } | undefined;
}

/** A fault that is waiting to happen. */
export interface Fault extends FaultRule {
  readonly id: string;
  /** How often it will still happen. Null if for ever. */
  readonly remaining: number | null;
  /** How often it has happened. */
  readonly fired: number;
}

export function isFaultKind(value: unknown): value is FaultKind {
  return typeof value === "string" && Object.hasOwn(FAULT_KINDS, value);
}
