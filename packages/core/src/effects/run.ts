import { markUnrepeatable } from "../handlers/handler.ts";
import { PayhooksError } from "../protocol/errors.ts";
import type { EffectResult } from "./context.ts";
import { effectIdIn } from "./effect-ids.ts";
import type { EffectRun, RunEffects } from "./effects.ts";
import { isTransactionEndedError } from "./errors.ts";

/** The work of each kind of database for one effect. */
export interface EffectStorage {
  readonly scope: string;
  readonly keepMs: number;
  /** True if `claim` is synchronous. */
  readonly isSync: boolean;
  /** Runs `fn` in a transaction that also stores the id, unless the id is stored already. */
  transact(id: string, fn: (tx: unknown) => unknown, signal: AbortSignal): Promise<EffectResult<unknown>>;
  /** Stores the id in a transaction of the merchant's. False if it was stored already. */
  claim(tx: unknown, id: string): boolean | Promise<boolean>;
}

/** The methods without their generic types. */
export interface UntypedEffectMethods {
  transaction(...args: readonly unknown[]): Promise<EffectResult<unknown>>;
  claimEffect(tx: unknown, name?: string): boolean | Promise<boolean>;
}

/** The effects of one run of one handler. Each id is used once, and only one effect runs at a time. */
class HandlerEffects implements UntypedEffectMethods {
  readonly #storage: EffectStorage;
  readonly #run: EffectRun;
  /** Ids whose transaction has succeeded in this run. */
  readonly #committedIds = new Set<string>();
  /** Ids that this run has claimed in the merchant's own transactions. */
  readonly #claimedIds = new Set<string>();
  #openTransaction: Promise<unknown> | null = null;
  /** The id of the open transaction. It is stored there as begun, so a query would find it. */
  #openId: string | null = null;
  #endedError: Error | null = null;

  constructor(storage: EffectStorage, run: EffectRun) {
    this.#storage = storage;
    this.#run = run;
  }

  async transaction(...args: readonly unknown[]): Promise<EffectResult<unknown>> {
    const [name, fn] = args.length === 1 ? [null, args[0]] : args;
    if (typeof fn !== "function") {
      throw new PayhooksError("ERR_OPTION_INVALID", "ctx.transaction was given no function.", {
        fix: 'Call ctx.transaction(async (tx) => …), or with a name before it: ctx.transaction("ledger", async (tx) => …).',
      });
    }
    const id = this.#idOf(name as string | null);
    if (this.#openTransaction !== null) {
      throw new PayhooksError(
        "ERR_EFFECT_NESTED",
        "ctx.transaction was called while an earlier call was still running.",
        {
          fix: "Wait for one call before the next. Inside its function, use tx: ctx.claimEffect(tx, name) adds an effect to it.",
        },
      );
    }
    if (this.#committedIds.has(id) || this.#claimedIds.has(id)) throw effectReusedError();
    try {
      this.#openId = id;
      const open = this.#storage.transact(id, fn as (tx: unknown) => unknown, this.#run.signal);
      this.#openTransaction = open;
      const result = await open;
      this.#committedIds.add(id);
      if (!result.ran) this.#run.onSkipped(id);
      return result;
    } catch (error) {
      throw this.#noteEnded(error);
    } finally {
      this.#openTransaction = null;
      this.#openId = null;
    }
  }

  claimEffect(tx: unknown, name?: string): boolean | Promise<boolean> {
    return this.#storage.isSync ? this.#claim(tx, name) : (async () => this.#claim(tx, name))();
  }

  #claim(tx: unknown, name: string | undefined): boolean | Promise<boolean> {
    this.#run.signal.throwIfAborted();
    const id = this.#idOf(name ?? null);
    if (id === this.#openId) throw effectReusedError();
    try {
      const claim = this.#storage.claim(tx, id);
      if (typeof claim === "boolean") return this.#recordClaim(id, claim);
      return claim.then(
        (isNew) => this.#recordClaim(id, isNew),
        (error: unknown) => {
          throw this.#noteEnded(error);
        },
      );
    } catch (error) {
      throw this.#noteEnded(error);
    }
  }

  /**
   * A claim that is repeated after a rollback does not find its id. If it finds an id of this run, the id was used twice, and
   * the second effect would be skipped.
   */
  #recordClaim(id: string, isNew: boolean): boolean {
    if (!isNew && (this.#claimedIds.has(id) || this.#committedIds.has(id))) throw effectReusedError();
    if (isNew) this.#claimedIds.add(id);
    else this.#run.onSkipped(id);
    return isNew;
  }

  async atRest(): Promise<void> {
    await this.#openTransaction;
    if (this.#endedError !== null) throw this.#endedError;
  }

  endedError(): Error | null {
    return this.#endedError;
  }

  #noteEnded(error: unknown): unknown {
    if (isTransactionEndedError(error)) this.#endedError ??= error;
    return error;
  }

  #idOf(name: string | null): string {
    const { effectId, receivedAt, now, evenIfExpired } = this.#run;
    const { scope, keepMs } = this.#storage;
    if (now - receivedAt > keepMs && !evenIfExpired) throw effectForgottenError(keepMs);
    return effectIdIn(scope, effectId, name);
  }
}

/** The effects of one run, on a storage. The caller adds their types. */
export function effectsOfRun(storage: EffectStorage, run: EffectRun): RunEffects<never> {
  const effects = new HandlerEffects(storage, run);
  return {
    methods: effects as never,
    atRest: () => effects.atRest(),
    endedError: () => effects.endedError(),
  };
}

function effectReusedError(): PayhooksError {
  return new PayhooksError(
    "ERR_EFFECT_REUSED",
    "A handler has used one effect twice. The second one would never happen.",
    {
      fix: 'Give each effect of a handler a name of its own: ctx.transaction("ledger", async (tx) => …).',
    },
  );
}

/** The error of an effect that may have happened or not. A later attempt could not find that out either. */
function effectForgottenError(keepMs: number): PayhooksError {
  const days = Math.round(keepMs / 86_400_000);
  return markUnrepeatable(
    new PayhooksError(
      "ERR_EFFECT_FORGOTTEN",
      `The event arrived longer ago than effects are kept (${days} days). Its effect may have happened and been forgotten.`,
      {
        fix: "Check whether it has happened. If not, replay the event with evenIfExpired. Otherwise discard it.",
      },
    ),
  );
}
