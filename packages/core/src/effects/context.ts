import type { HandlerContext } from "../handlers/handler.ts";

/** What became of an effect. */
export type EffectResult<T> =
  /** It is committed, and this call did it. */
  | { readonly ran: true; readonly value: T }
  /** An earlier run has committed it: nothing was called. */
  | { readonly ran: false; readonly value: undefined };

/** A value, and no promise of one. */
export type Immediate<T> = T extends PromiseLike<unknown> ? never : T;

/** What has the effect. With a synchronous database it must not be async. */
export type EffectFunction<Tx, T, Sync extends boolean> = Sync extends true
  ? (tx: Tx) => Immediate<T>
  : (tx: Tx) => T | PromiseLike<T>;

/** The two calls that make an effect happen once. */
export interface EffectMethods<Tx, Sync extends boolean = false> {
  /**
   * Opens a transaction of your own client, stores the effect's id in it, calls `fn`, and commits both together. Where an
   * earlier run has committed the effect, `fn` is not called. Serialization failures and deadlocks are repeated, so that
   * `fn` may be called again after a rollback; an abort of `ctx.signal` rolls back.
   *
   * @throws PayhooksError `ERR_EFFECTS_OFF`, `ERR_EFFECT_NAME`, `ERR_EFFECT_REUSED`, `ERR_EFFECT_NESTED`,
   * `ERR_EFFECT_TRANSACTION`, `ERR_EFFECT_ASYNC`, `ERR_EFFECT_FORGOTTEN`; and what `fn` or the database throws, after a
   * rollback.
   */
  transaction<T>(fn: EffectFunction<Tx, T, Sync>): Promise<EffectResult<T>>;
  /** The same for a second effect of one handler. The name is part of the effect's id: keep it. */
  transaction<T>(name: string, fn: EffectFunction<Tx, T, Sync>): Promise<EffectResult<T>>;
  /**
   * Stores the effect's id in a transaction that you have opened, and that you commit. False: an earlier run has committed
   * the effect, so leave it out. Repeating the transaction after a deadlock is yours to do.
   *
   * @throws PayhooksError the codes of `transaction`; and what the database throws.
   */
  claimEffect(tx: Tx, name?: string): Sync extends true ? boolean : Promise<boolean>;
}

/** The context of the handlers of a receiver with `effects`; `Tx` is a transaction of the merchant's own client. */
export interface EffectContext<Tx, Sync extends boolean = false>
  extends HandlerContext,
    EffectMethods<Tx, Sync> {}
