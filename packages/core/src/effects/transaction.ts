import { type Clock, sleep } from "../time/clock.ts";
import type { EffectResult } from "./context.ts";
import { brokenTransaction } from "./errors.ts";
import { guard } from "./guard.ts";

/** What an effect needs of a client. */
export interface EffectsClient<Tx> {
  /**
   * Opens a transaction, calls `work` with it, and commits. Resolves to the result of `work`, once the commit is certain. If
   * `work` rejects, it rolls back and rejects with the same error.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Stores the id, unless it is stored already. In that case it must not throw. If another transaction is storing the same id,
   * it has to wait for that one. Resolves to whether the id was stored. A text instead of `true` is passed to `isIntact`.
   */
  insert(tx: Tx, id: string): Promise<boolean | string>;
  /**
   * Called before the commit: whether this is still the transaction that stored the id, and can be committed. False, or a
   * rejection, rolls back. `inserted` is the result of `insert`.
   */
  isIntact?(tx: Tx, inserted: true | string): Promise<boolean>;
  /**
   * Whether a transaction that failed with this error should be tried again at once, as after a deadlock or a serialization
   * failure.
   */
  isRepeatable?(error: unknown): boolean;
  /** Methods of a transaction that `fn` must not call, with the errors that they throw instead. */
  readonly refused?: Readonly<Record<string, () => Error>>;
}

const REPEAT_MIN_MS = 5;
const REPEAT_MAX_MS = 1_000;

type Work<T> = EffectResult<T>;

/**
 * Makes one effect happen: the id and the changes of `fn` are committed together, or not at all. If the database asks for the
 * transaction to be repeated, it is repeated until `signal` aborts. That does not count as a failure of the handler.
 */
export async function transact<Tx, T>(
  client: EffectsClient<Tx>,
  id: string,
  fn: (tx: Tx) => T | PromiseLike<T>,
  signal: AbortSignal,
  clock: Clock,
): Promise<EffectResult<T>> {
  for (let repeats = 0; ; repeats++) {
    const once = new Attempt<Tx, T>(client, id, fn, signal, clock);
    try {
      return await once.run();
    } catch (error) {
      // On a broken connection a client may report that it could not roll back, instead of what broke the connection.
      const first = once.failure ?? error;
      const isRepeatable = client.isRepeatable?.(first) === true || client.isRepeatable?.(error) === true;
      if (signal.aborted || !isRepeatable) throw once.failure ?? error;
      await sleep(clock, backoffMs(repeats));
    }
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

  async run(): Promise<Work<T>> {
    this.#signal.throwIfAborted();
    const aborted = this.#whenAborted();
    try {
      const committed = this.#client.transaction((tx) => this.#work(tx, aborted.promise));
      committed.catch(() => this.#lose());
      // Waiting for a connection can be given up. A transaction that has begun is waited for, including its commit.
      const letGo = aborted.promise.catch((reason: unknown) => {
        if (this.#hasBegun) return committed;
        committed.catch(() => {});
        throw reason;
      });
      return await Promise.race([committed, letGo]);
    } finally {
      aborted.forget();
    }
  }

  async #work(tx: Tx, aborted: Promise<never>): Promise<Work<T>> {
    try {
      this.#signal.throwIfAborted();
      this.#hasBegun = true;
      const inserted = await Promise.race([this.#client.insert(tx, this.#id), aborted]);
      if (inserted === false) return { ran: false, value: undefined };
      const value = await Promise.race([this.#call(tx), aborted]);
      await Promise.race([this.#check(tx, inserted), aborted]);
      return { ran: true, value };
    } catch (error) {
      this.failure ??= error;
      // This gives a client that has lost its connection the time to report it.
      await sleep(this.#clock, 0);
      // postgres.js would still send a rollback on the lost connection, and that would end the process.
      if (this.#isLost) await NEVER;
      throw error;
    }
  }

  /** Ends the attempt if the client notices during `fn` that the connection is lost. */
  #lose(): void {
    this.#isLost = true;
    this.#end();
  }

  async #call(transaction: Tx): Promise<T> {
    const { tx, end } = guard(transaction, this.#client.refused);
    this.#end = end;
    // An abort ends the attempt as well, whatever `fn` is doing.
    this.#signal.addEventListener("abort", end, { once: true });
    try {
      return await this.#fn(tx);
    } finally {
      end();
      this.#signal.removeEventListener("abort", end);
    }
  }

  async #check(tx: Tx, inserted: true | string): Promise<void> {
    if (this.#isLost) throw brokenTransaction();
    let isIntact: boolean;
    try {
      isIntact = (await this.#client.isIntact?.(tx, inserted)) ?? true;
    } catch (cause) {
      if (this.#client.isRepeatable?.(cause) === true) throw cause;
      throw brokenTransaction(cause);
    }
    if (!isIntact) throw brokenTransaction();
  }

  #whenAborted(): { readonly promise: Promise<never>; forget(): void } {
    let abort = (): void => {};
    const promise = new Promise<never>((_, reject) => {
      abort = () => reject(this.#signal.reason);
      this.#signal.addEventListener("abort", abort, { once: true });
    });
    promise.catch(() => {});
    return { promise, forget: () => this.#signal.removeEventListener("abort", abort) };
  }
}

const NEVER: Promise<never> = new Promise(() => {});

/** 5 ms, doubled up to a second, ± 50 %, so that transactions that collided once do not collide again. */
function backoffMs(repeats: number): number {
  return Math.min(REPEAT_MIN_MS * 2 ** Math.min(repeats, 20), REPEAT_MAX_MS) * (0.5 + Math.random());
}
