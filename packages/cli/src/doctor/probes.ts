import { randomUUID } from "node:crypto";
import type { Outgoing } from "../delivery/post.ts";

/** The kind of a probe, which decides how its answer is judged. */
export type ProbeKind =
  /** Compact JSON, as a receiver that serialises it again would write it. */
  | "baseline"
  /** As genuine as the baseline, but written differently. */
  | "spelling"
  /** Genuine, with numbers that change when they are parsed and serialised again. */
  | "number"
  /** Genuine: another status of the same transaction. */
  | "progress"
  /** The bytes of the baseline, sent again. */
  | "duplicate"
  | "forged"
  | "not-json"
  | "stale"
  | "large"
  | "wrong-method";

/** One request of an examination. */
export interface Probe {
  readonly name: string;
  /** The `payTxnId` or `idempotency_key` in its body. Null if there is none. */
  readonly id: string | null;
  readonly kind: ProbeKind;
  readonly outgoing: Outgoing;
}

export const GENUINE: ReadonlySet<ProbeKind> = new Set(["baseline", "spelling", "number", "progress"]);

/** Larger than any delivery. A receiver should refuse such a body. */
export const LARGE_BYTES: number = 1_048_576;
export const JSON_HEADERS: Readonly<Record<string, string>> = { "content-type": "application/json" };
export const STALE_MS: number = 30 * 86_400_000;

/** The ids of one examination. They all begin alike, so that its entries can be found and discarded. */
export interface ProbeIds {
  readonly beginning: string;
  next(): string;
}

/** UUIDs that share their first eight digits. */
export function createProbeIds(prefix: string): ProbeIds {
  const beginning = `${prefix}${randomUUID().slice(0, 8)}-`;
  return { beginning, next: () => beginning + randomUUID().slice(9) };
}

/** The id in a body that a receiver deduplicates by, or null. */
export function idIn(rawBody: Uint8Array): string | null {
  try {
    const { payTxnId, idempotency_key: key } = JSON.parse(Buffer.from(rawBody).toString("utf8"));
    return payTxnId ?? key ?? null;
  } catch {
    return null;
  }
}
