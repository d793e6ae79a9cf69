/**
 * Exactly once: the id of an effect is stored in the transaction that has the effect. Whichever run commits first has
 * it; every other one finds the id, and leaves the effect out. The uniqueness of the id in the merchant's own database
 * decides, not the lease, so that it holds with every inbox.
 */
import type { HandlerContext } from "../handlers/handler.ts";

/** What a run tells its effects. */
export interface EffectRun {
  /** The same for every run of the handler on the event. */
  readonly effectId: string;
  /** Aborts when the run may go on no longer. */
  readonly signal: AbortSignal;
  /** When the event arrived, in milliseconds since the epoch. */
  readonly receivedAt: number;
  /** The receiver's clock. */
  readonly now: number;
  /** A person has said to run it although its effects may be forgotten. */
  readonly evenIfExpired: boolean;
  /** An earlier run has had the effect. */
  skipped(effect: string): void;
}

/** The effects of one run of one handler. */
export interface RunEffects<Context extends HandlerContext = HandlerContext> {
  /** What the handler's context has beside the fields of every context. */
  readonly methods: Pick<Context, Exclude<keyof Context, keyof HandlerContext>>;
  /** Waits for transactions that the handler did not wait for. Rejects with what the first of them failed with. */
  atRest(): Promise<void>;
}

/** Where effects are kept: the `effects` option of a receiver. Made by `pgEffects` and its like, or by `effects`. */
export interface Effects<Context extends HandlerContext = HandlerContext> {
  /** How long an effect is remembered. An event that is older than this is not run without `evenIfExpired`. */
  readonly keepMs: number;
  /** Makes the table where it is missing, and checks it. Idempotent. */
  open(): Promise<void>;
  /** Forgets some of what is older than `keepMs`. True: there is more. */
  prune(): Promise<boolean>;
  /** For one run of a handler. */
  forRun(run: EffectRun): RunEffects<Context>;
}

/** Options that all kinds of effects have. */
export interface EffectsOptions {
  /**
   * Begins every id: two receivers that share a table, and do different things with the same events, need one each.
   * Letters, digits, `_`, `.` and `-`, at most 64. Default: none.
   */
  readonly scope?: string | undefined;
  /** How long effects are remembered. Default 400 days. */
  readonly keepMs?: number | undefined;
}
