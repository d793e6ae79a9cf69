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
  readonly kind: ProbeKind;
  readonly outgoing: Outgoing;
}

export const GENUINE: ReadonlySet<ProbeKind> = new Set(["baseline", "spelling", "number", "progress"]);

/** Larger than any delivery; receivers bound what they read. */
export const LARGE_BYTES: number = 1_048_576;
export const JSON_HEADERS: Readonly<Record<string, string>> = { "content-type": "application/json" };
export const STALE_MS: number = 30 * 86_400_000;
