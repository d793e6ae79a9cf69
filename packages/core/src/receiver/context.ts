import type { EffectResult } from "../effects/context.ts";
import type { EffectRun, Effects, RunEffects } from "../effects/effects.ts";
import { effectsOffError } from "../effects/errors.ts";
import type { UntypedEffectMethods } from "../effects/run.ts";
import type { HandlerContext } from "../handlers/handler.ts";
import type { RunHandle } from "../inbox/contract/inbox.ts";
import type { RunInput } from "../inbox/record/run-input.ts";
import type { Logger } from "../notices/logger.ts";
import type { Cancellation } from "../time/cancellation.ts";

/** The parts that a context needs for effects. */
export interface EffectDependencies {
  /** Null if the receiver has none. */
  readonly effects: Effects | null;
  readonly now: number;
  /** Called if an earlier run has committed the effect. */
  readonly onSkipped: (effect: string) => void;
}

/** A promise that knows whether it is awaited. If it is not, its rejection does not end the process. */
class WatchedPromise<T> extends Promise<T> {
  isAwaited = false;

  static watch<T>(promise: Promise<T>): WatchedPromise<T> {
    const watchedPromise = new WatchedPromise<T>((resolve) => resolve(promise));
    Promise.prototype.then.call(watchedPromise, undefined, () => {});
    return watchedPromise;
  }

  // A promise that is derived from it is an ordinary one.
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isAwaited = true;
    return super.then(onFulfilled, onRejected);
  }
}

/** The context of a handler, with its effects. The public types say which of the members exist. */
export class RunContext implements HandlerContext, UntypedEffectMethods {
  readonly effectId: string;
  readonly eventId: string;
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly previousStatus: string | null;
  readonly previousAmount: string | null;
  readonly tenant: string;
  readonly keyId: string | null;
  readonly log: Logger;
  readonly #cancellation: Cancellation;
  readonly #effectDependencies: EffectDependencies;
  readonly #evenIfExpired: boolean;
  #effects: RunEffects | null = null;
  readonly #watched: WatchedPromise<unknown>[] = [];

  constructor(
    run: RunHandle,
    handler: string,
    attempt: number,
    cancellation: Cancellation,
    log: Logger,
    effectDependencies: EffectDependencies,
  ) {
    const { delivery } = run.input;
    this.eventId = run.input.eventId;
    this.effectId = effectIdOf(run.input, handler);
    this.#effectDependencies = effectDependencies;
    this.#evenIfExpired = run.input.evenIfExpired;
    this.attempt = attempt;
    this.receivedAt = new Date(delivery.receivedAt);
    this.previousStatus = run.input.previousStatus;
    this.previousAmount = run.input.previousAmount;
    this.tenant = delivery.tenant;
    this.keyId = delivery.keyId;
    this.log = log;
    this.#cancellation = cancellation;
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal;
  }

  transaction(...args: readonly unknown[]): Promise<EffectResult<unknown>> {
    return this.#watch((async () => this.#methods("transaction").transaction(...args))());
  }

  claimEffect(tx: unknown, name?: string): boolean | Promise<boolean> {
    const claim = this.#methods("claimEffect").claimEffect(tx, name);
    return typeof claim === "boolean" ? claim : this.#watch(claim);
  }

  #watch<T>(effect: Promise<T>): Promise<T> {
    const watchedEffect = WatchedPromise.watch(effect);
    this.#watched.push(watchedEffect);
    return watchedEffect;
  }

  /**
   * Waits for effects that the handler did not wait for, and rejects if one of them failed; null if there are none. Without
   * this, such a failure would end the process as an unhandled rejection, or be overlooked.
   */
  waitForEffects(): Promise<void> | null {
    if (this.#effects === null && this.#watched.length === 0) return null;
    const unawaitedEffects = this.#watched.filter(({ isAwaited }) => !isAwaited);
    return Promise.all([this.#effects?.atRest(), ...unawaitedEffects]).then(() => {});
  }

  /**
   * The error of an effect whose outcome only a person can find out, even if the handler has caught the error; null if
   * there is none.
   */
  lostEffectError(): Error | null {
    return this.#effects?.endedError() ?? null;
  }

  #methods(call: keyof UntypedEffectMethods): UntypedEffectMethods {
    const { effects, now, onSkipped } = this.#effectDependencies;
    if (effects === null) throw effectsOffError(call);
    const { effectId, receivedAt, signal } = this;
    const evenIfExpired = this.#evenIfExpired;
    const run: EffectRun = {
      effectId,
      signal,
      receivedAt: receivedAt.getTime(),
      now,
      evenIfExpired,
      onSkipped,
    };
    this.#effects ??= effects.forRun(run);
    return this.#effects.methods as unknown as UntypedEffectMethods;
  }
}

/**
 * The `effectId`. A replay with `repeatEffects` gets a new one. So do the onHeld handlers of an event that is held
 * again, because this is a new hold. It has no colon, because queues such as BullMQ do not accept one in an id.
 */
function effectIdOf({ eventId, mode, replays, repeatEffects }: RunInput, handler: string): string {
  const isNew = repeatEffects || (mode === "onHeld" && replays > 0);
  return `${eventId}.${handler.replace(":", "~")}${isNew ? `~${replays}` : ""}`;
}
