import { type Clock, sleep } from "../time/clock.ts";
import type { Environment } from "../time/environment.ts";
import { jitterOf } from "../time/jitter.ts";
import type { EffectResult } from "./context.ts";
import {
  databaseUnavailableError,
  idNotStoredError,
  isTransactionEndedError,
  transactionAbortedError,
  transactionEndedError,
} from "./errors.ts";
import { guard } from "./guard.ts";

/** The client's answer to the request to store the id of an effect. */
export type EffectInsertResult =
  /** No such id, so it is stored now. `transaction` is passed to `finish` and `hasEnded`, such as the transaction's id. */
  | { readonly found: "nothing"; readonly transaction?: string }
  /** An effect that was begun, and committed before its end. That happens only if code inside the effect commits. */
  | { readonly found: "begun" }
  /** An effect that an earlier run has committed. */
  | { readonly found: "done" };

/** An id that was stored by this transaction. */
export type InsertedEffect = Extract<EffectInsertResult, { readonly found: "nothing" }>;

/** The operations that effects need of a client. */
export interface EffectsClient<Tx> {
  /**
   * Opens a transaction, calls `work` with it, and commits. Resolves to the result of `work`, once the commit is certain. If
   * `work` rejects, it rolls back and rejects with the same error.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * The first statement of an effect: stores the id as `begun`, or as `done` for `ctx.claimEffect`, unless it is stored
   * already. In that case it must not throw. If another transaction is storing the same id, it must wait for that
   * transaction.
   */
  insert(tx: Tx, id: string, as: "begun" | "done"): Promise<EffectInsertResult>;
  /**
   * The last statement before the commit: makes the id `done`. False if this is no longer the transaction that stored
   * the id, or if the id is not stored as `begun`. False, or a rejection, rolls back.
   */
  finish(tx: Tx, id: string, insertedEffect: InsertedEffect): Promise<boolean>;
  /**
   * Called after a failure, before the rollback. True if code inside has ended the transaction that stored the id. Then
   * something may be committed, and the event is held. Without this function, only a commit is noticed, and only by the
   * next run.
   */
  hasEnded?(tx: Tx, id: string, insertedEffect: InsertedEffect, error: unknown): Promise<boolean>;
  /**
   * True if a transaction that failed with this error should be tried again at once, as after a deadlock or a serialization
   * failure.
   */
  isRepeatable?(error: unknown): boolean;
  /**
   * Called with an error from before the call of `fn`. True if the database could not be reached, or accepted no writes. Then the
   * event waits, and the call does not count as an attempt.
   */
  isUnavailable?(error: unknown): boolean;
  /** Methods of a transaction that `fn` must not call, with the errors that they throw instead. */
  readonly refused?: Readonly<Record<string, () => Error>>;
}

const MIN_REPEAT_DELAY_MS = 5;
const MAX_REPEAT_DELAY_MS = 1_000;
/** How long to wait for the answer of `hasEnded` after a failure, because a statement may still be running. */
const HAS_ENDED_TIMEOUT_MS = 2_000;

/**
 * Makes one effect happen: the id and the changes of `fn` are committed together, or not at all. The id is stored as
 * `begun` first, to keep other runs of the effect out. It becomes `done` directly before the commit. So if code inside
 * commits, it commits an id that has only begun. This run or a later one finds this id, and the effect is neither
 * skipped nor repeated unnoticed.
 *
 * After an error such as a deadlock, the transaction is repeated until `signal` aborts. That does not count as a failure of the
 * handler.
 */
export async function transact<Tx, T>(
  client: EffectsClient<Tx>,
  id: string,
  fn: (tx: Tx) => T | PromiseLike<T>,
  signal: AbortSignal,
  environment: Environment,
): Promise<EffectResult<T>> {
  for (let repeats = 0; ; repeats++) {
    const attempt = new Attempt<Tx, T>(client, id, fn, signal, environment);
    try {
      return await attempt.run();
    } catch (error) {
      // If a connection breaks, a client may report the failed rollback instead of the cause.
      const cause = attempt.failure ?? error;
      if (signal.aborted || isTransactionEndedError(cause)) throw cause;
      const failsAs = (classification: "isRepeatable" | "isUnavailable"): boolean =>
        isClassifiedAs(client, classification, cause) || isClassifiedAs(client, classification, error);
      if (!failsAs("isRepeatable"))
        throw !attempt.hasCalled && failsAs("isUnavailable") ? databaseUnavailableError(cause) : cause;
      await sleep(environment, backoffMs(repeats, environment.token()));
    }
  }
}

/**
 * Asks the client about an error. If the client cannot read it, the answer is false: a function may throw anything, even null.
 */
export function isClassifiedAs<Tx>(
  client: EffectsClient<Tx>,
  classification: "isRepeatable" | "isUnavailable",
  error: unknown,
): boolean {
  try {
    return client[classification]?.(error) === true;
  } catch {
    return false;
  }
}

/** One attempt at a transaction. */
class Attempt<Tx, T> {
  /** The error that the work rejected with. */
  failure: unknown = null;
  readonly #client: EffectsClient<Tx>;
  readonly #id: string;
  readonly #fn: (tx: Tx) => T | PromiseLike<T>;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  #hasBegun = false;
  /** The id as this transaction has stored it; null before that. */
  #insertedEffect: InsertedEffect | null = null;
  /** The client has given the transaction up. */
  #isLost = false;
  #end = (): void => {};

  constructor(
    client: EffectsClient<Tx>,
    id: string,
    fn: (tx: Tx) => T | PromiseLike<T>,
    signal: AbortSignal,
    clock: Clock,
  ) {
    this.#client = client;
    this.#id = id;
    this.#fn = fn;
    this.#signal = signal;
    this.#clock = clock;
  }

  /** True if `fn` was called. Then it may have changed something. */
  get hasCalled(): boolean {
    return this.#insertedEffect !== null;
  }

  async run(): Promise<EffectResult<T>> {
    this.#signal.throwIfAborted();
    const abortWait = this.#rejectOnAbort();
    try {
      const committed = this.#client.transaction((tx) => this.#work(tx, abortWait.promise));
      committed.catch(() => this.#onConnectionLost());
      // An abort ends the wait for a connection. If the transaction has begun, the attempt waits for it, including its commit.
      const committedUnlessAborted = abortWait.promise.catch((reason: unknown) => {
        if (this.#hasBegun) return committed;
        committed.catch(() => {});
        throw reason;
      });
      return await Promise.race([committed, committedUnlessAborted]);
    } finally {
      abortWait.forget();
    }
  }

  async #work(tx: Tx, aborted: Promise<never>): Promise<EffectResult<T>> {
    try {
      this.#signal.throwIfAborted();
      this.#hasBegun = true;
      const insertedEffect = await Promise.race([this.#client.insert(tx, this.#id, "begun"), aborted]);
      if (insertedEffect.found === "done") return { ran: false, value: undefined };
      if (insertedEffect.found === "begun") throw transactionEndedError();
      this.#insertedEffect = insertedEffect;
      const value = await Promise.race([this.#callFunction(tx), aborted]);
      await Promise.race([this.#finish(tx, insertedEffect), aborted]);
      return { ran: true, value };
    } catch (error) {
      this.failure ??= error;
      // This gives a client that has lost its connection the time to report it.
      await sleep(this.#clock, 0);
      if (await this.#hasEnded(tx, error)) this.failure = transactionEndedError(error);
      // postgres.js would still send a rollback on the lost connection, and that would end the process.
      if (this.#isLost) await NEVER_SETTLED;
      throw this.failure;
    }
  }

  /** Ends the attempt if the client notices during `fn` that the connection is lost. */
  #onConnectionLost(): void {
    this.#isLost = true;
    this.#end();
  }

  async #callFunction(transaction: Tx): Promise<T> {
    const { tx, end } = guard(transaction, this.#client.refused);
    this.#end = end;
    // An abort ends the attempt as well, even while `fn` runs.
    this.#signal.addEventListener("abort", end, { once: true });
    try {
      return await this.#fn(tx);
    } finally {
      end();
      this.#signal.removeEventListener("abort", end);
    }
  }

  async #finish(tx: Tx, insertedEffect: InsertedEffect): Promise<void> {
    if (this.#isLost) throw transactionAbortedError();
    let isDone: boolean;
    try {
      isDone = await this.#client.finish(tx, this.#id, insertedEffect);
    } catch (cause) {
      if (isClassifiedAs(this.#client, "isRepeatable", cause)) throw cause;
      throw transactionAbortedError(cause);
    }
    if (!isDone) throw idNotStoredError("its table");
  }

  /** False if that cannot be found out. Then the next run finds a commit. */
  async #hasEnded(transaction: Tx, error: unknown): Promise<boolean> {
    if (this.#insertedEffect === null || this.#isLost || this.#client.hasEnded === undefined) return false;
    // If the answer comes too late, no further statement may be sent.
    const { tx, end } = guard(transaction);
    const falseWhenLate = sleep(this.#clock, HAS_ENDED_TIMEOUT_MS).then(() => false);
    try {
      return await Promise.race([
        this.#client.hasEnded(tx, this.#id, this.#insertedEffect, error),
        falseWhenLate,
      ]);
    } catch {
      return false;
    } finally {
      end();
    }
  }

  #rejectOnAbort(): { readonly promise: Promise<never>; forget(): void } {
    let abort = (): void => {};
    const promise = new Promise<never>((_, reject) => {
      abort = () => reject(this.#signal.reason);
      this.#signal.addEventListener("abort", abort, { once: true });
    });
    promise.catch(() => {});
    return { promise, forget: () => this.#signal.removeEventListener("abort", abort) };
  }
}

const NEVER_SETTLED: Promise<never> = new Promise(() => {});

/** 5 ms, doubled up to a second, ± 50 %, so that transactions that collided once do not collide again. */
function backoffMs(repeats: number, token: string): number {
  return Math.min(MIN_REPEAT_DELAY_MS * 2 ** Math.min(repeats, 20), MAX_REPEAT_DELAY_MS) * jitterOf(token);
}
