import type { GiveUpReason } from "../../protocol/held-reasons.ts";

/** The state of one handler for one event. */
export interface HandlerState {
  /**
   * How many attempts count. An attempt does not count if it was begun early and failed, or if it was taken back before
   * it started.
   */
  readonly attempts: number;
  /** If the state is `started` when the next run begins, the process died during the attempt, or lost its lease. */
  readonly state: "started" | "done" | "failed" | "given-up";
  /** The handler is not called before this time (store's clock); 0: at once. */
  readonly dueAt: number;
  /** How far away that time was when it was written. It shows whether the clock was wrong then. */
  readonly delayWhenWrittenMs: number;
  /** The last error, as text. */
  readonly error: string | null;
  /** Why it was given up; null otherwise. */
  readonly reason: GiveUpReason | null;
  /** How many effects it skipped, because an earlier run had committed them. Left out if none. */
  readonly skipped?: number;
}

/** A new state of one handler. Writing it twice has the same result as writing it once. */
export type HandlerChange =
  | { readonly name: string; readonly kind: "started"; readonly attempt: number }
  | {
      readonly name: string;
      readonly kind: "done";
      readonly attempt: number;
      /** How many effects it skipped. Left out if none. */
      readonly skipped?: number;
    }
  | {
      readonly name: string;
      readonly kind: "failed";
      /**
       * The number of attempts that count so far. If this attempt does not count, it is one less than the number at the start.
       */
      readonly attempt: number;
      readonly delayMs: number;
      readonly error: string;
    }
  | {
      readonly name: string;
      readonly kind: "given-up";
      readonly attempt: number;
      readonly reason: GiveUpReason;
      readonly error: string;
    }
  /** Back to `before` (null: never tried). The handler was not called, or it was called early and that call does not count. */
  | { readonly name: string; readonly kind: "undone"; readonly before: HandlerState | null };

/** The names of onHeld handlers begin with this in a record. Their states start again whenever the event is held again. */
export const ON_HELD_PREFIX = "held:";
