import type { HandlerContext } from "../handlers/handler.ts";

/** The result of an effect. */
export type EffectResult<T> =
  /** The effect is committed, by this call. */
  | { readonly ran: true; readonly value: T }
  /** An earlier run has committed the effect, so `fn` was not called. */
  | { readonly ran: false; readonly value: undefined };

/** A value that is not a promise. */
export type NotPromise<T> = T extends PromiseLike<unknown> ? never : T;

/** The function that has the effect. With a synchronous database, it must not be async. */
export type EffectFunction<Tx, T, Sync extends boolean> = Sync extends true
  ? (tx: Tx) => NotPromise<T>
  : (tx: Tx) => T | PromiseLike<T>;

/** The two methods that make an effect happen once. */
export interface EffectMethods<Tx, Sync extends boolean = false> {
  /**
   * Opens a transaction of your own client, stores the effect's id in it, calls `fn`, and commits both together. If an earlier
   * run has committed the effect, `fn` is not called. After a serialization failure or a deadlock, the transaction is rolled
   * back and repeated, so `fn` may be called again. An abort of `ctx.signal` rolls back.
   *
   * @throws PayhooksError `ERR_EFFECTS_OFF`, `ERR_EFFECT_NAME`, `ERR_EFFECT_REUSED`, `ERR_EFFECT_NESTED`,
   * `ERR_EFFECT_TRANSACTION`, `ERR_EFFECT_ASYNC`, `ERR_EFFECT_FORGOTTEN`; and the errors of `fn` or the database, after a
   * rollback.
   */
  transaction<T>(fn: EffectFunction<Tx, T, Sync>): Promise<EffectResult<T>>;
  /** Runs a named effect, for a handler with more than one. The name is part of the effect's id, so do not change it. */
  transaction<T>(name: string, fn: EffectFunction<Tx, T, Sync>): Promise<EffectResult<T>>;
  /**
   * Stores the effect's id in a transaction that you have opened, and that you commit. False: an earlier run has committed the
   * effect, so leave it out. You have to repeat the transaction yourself after a deadlock.
   *
   * @throws PayhooksError the codes of `transaction`; and the errors of the database.
   */
  claimEffect(tx: Tx, name?: string): Sync extends true ? boolean : Promise<boolean>;
}

/** The context of the handlers of a receiver with `effects`; `Tx` is a transaction of the merchant's own client. */
export interface EffectContext<Tx, Sync extends boolean = false>
  extends HandlerContext,
    EffectMethods<Tx, Sync> {}
