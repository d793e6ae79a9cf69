/**
 * Exactly once: the id of an effect is stored in the same transaction as the effect. The run that commits first has the effect.
 * Every other run finds the id, and skips the effect. This relies on a unique key in the merchant's own database, and not on
 * leases, so it works with every inbox.
 */
import type { HandlerContext } from "../handlers/handler.ts";

/** The facts about a run that its effects use. */
export interface EffectRun {
  /** Identifies the effect. Every run of the handler on the event has this id. */
  readonly effectId: string;
  /** Aborts when the run must stop. */
  readonly signal: AbortSignal;
  /** When the event arrived, in milliseconds since the epoch. */
  readonly receivedAt: number;
  /** The receiver's clock. */
  readonly now: number;
  /** A person has decided to run the event although the ids of its effects may have been deleted. */
  readonly evenIfExpired: boolean;
  /** Called if an earlier run has had the effect. */
  onSkipped(effect: string): void;
}

/** The effects of one run of one handler. */
export interface RunEffects<Context extends HandlerContext = HandlerContext> {
  /** The members of the handler's context besides those of every context. */
  readonly methods: Pick<Context, Exclude<keyof Context, keyof HandlerContext>>;
  /** Waits for transactions that the handler did not await. Rejects with the error of the first that fails. */
  atRest(): Promise<void>;
  /** The `ERR_EFFECT_ENDED` of one of its transactions, even if the handler has caught it; null if there is none. */
  endedError(): Error | null;
}

/**
 * The storage of effects: the `effects` option of a receiver. Made by `effects`, or by a function for one kind of client such as
 * `pgEffects`.
 */
export interface Effects<Context extends HandlerContext = HandlerContext> {
  /** How long an effect is remembered. An event that is older than this is not run without `evenIfExpired`. */
  readonly keepMs: number;
  /** Makes the table if it is missing, and checks it. Idempotent. */
  open(): Promise<void>;
  /** Deletes some effects that are older than `keepMs`. True if there are more. */
  prune(): Promise<boolean>;
  /** The effects of one run of a handler. */
  forRun(run: EffectRun): RunEffects<Context>;
}

/** Options that all kinds of effects have. */
export interface EffectsOptions {
  /**
   * The beginning of every id. Two receivers that share a table, and do different things with the same events, need different
   * scopes. At most 64 letters, digits, `_`, `.` and `-`. Default: none.
   */
  readonly scope?: string | undefined;
  /** How long effects are remembered. Default 400 days. */
  readonly keepMs?: number | undefined;
}
