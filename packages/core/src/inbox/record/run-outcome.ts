import type { HeldReason } from "../../protocol/held-reasons.ts";

/** What the runner decides about the event at the end of a run. A `RunEnd` has it, with whatever else is to be written. */
export type RunOutcome =
  | { readonly kind: "done" }
  /** At least one handler is to be tried again, in `delayMs`. */
  | { readonly kind: "retry"; readonly delayMs: number }
  /** `onHeld`: the names of the onHeld handlers that are to be called. */
  | {
      readonly kind: "held";
      readonly reason: HeldReason;
      readonly detail: string | null;
      readonly onHeld: readonly string[];
    }
  /** The onHeld handlers are done. The event stays held. */
  | { readonly kind: "stays-held" }
  /** No handler was called. Another process may take the event at once, or after `delayMs`. */
  | { readonly kind: "handed-back"; readonly delayMs?: number }
  /** A later event of its subject has begun. */
  | { readonly kind: "stale" };
