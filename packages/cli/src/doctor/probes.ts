import { randomUUID } from "node:crypto";
import type { Outgoing } from "../delivery/post.ts";

/** What a probe is about, and so how its answer is judged. */
export type ProbeKind =
  /** Compact JSON, as a re-serialising receiver would write it itself. */
  | "baseline"
  /** As genuine as the baseline; only written in another way. */
  | "spelling"
  /** Genuine, with numbers that change when they are read and written anew. */
  | "number"
  /** Genuine: another status of the same transaction. */
  | "progress"
  /** The baseline's bytes once more. */
  | "duplicate"
  | "forged"
  | "not-json"
  | "stale"
  | "large"
  | "wrong-method";

/** One request and what it is for. */
export interface Probe {
  readonly name: string;
  /** The `payTxnId` or `idempotency_key` in its body; null where there is none. */
  readonly id: string | null;
  readonly kind: ProbeKind;
  readonly outgoing: Outgoing;
}

export const GENUINE: ReadonlySet<ProbeKind> = new Set(["baseline", "spelling", "number", "progress"]);

/** Larger than any delivery; receivers bound what they read. */
export const LARGE_BYTES: number = 1_048_576;
export const JSON_HEADERS: Readonly<Record<string, string>> = { "content-type": "application/json" };
export const STALE_MS: number = 30 * 86_400_000;

/** Ids of one examination. They all begin alike, so that what it leaves behind can be found, and discarded. */
export interface ProbeIds {
  readonly beginning: string;
  next(): string;
}

/** UUIDs that share their first eight digits. */
export function createProbeIds(prefix: string): ProbeIds {
  const beginning = `${prefix}${randomUUID().slice(0, 8)}-`;
  return { beginning, next: () => beginning + randomUUID().slice(9) };
}

/** The id that a receiver deduplicates by, where there is one in a body. */
export function idIn(rawBody: Uint8Array): string | null {
  try {
    const { payTxnId, idempotency_key: key } = JSON.parse(Buffer.from(rawBody).toString("utf8"));
    return payTxnId ?? key ?? null;
  } catch {
    return null;
  }
}
