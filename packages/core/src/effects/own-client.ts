import { checkTime } from "../protocol/check-number.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { emptyContext } from "../time/async-context.ts";
import { type Clock, systemClock } from "../time/clock.ts";
import { type Environment, environmentOf } from "../time/environment.ts";
import type { EffectContext } from "./context.ts";
import { checkScope } from "./effect-ids.ts";
import type { EffectRun, Effects, EffectsOptions, RunEffects } from "./effects.ts";
import { databaseUnavailableError, transactionEndedError } from "./errors.ts";
import { type EffectStorage, effectsOfRun } from "./run.ts";
import { type EffectInsertResult, type EffectsClient, isClassifiedAs, transact } from "./transaction.ts";

/** A client of your own, for {@link effects}. */
export interface OwnClient<Tx> extends EffectsClient<Tx> {
  /** Makes the table if it is missing, and checks it. Called at the start. */
  open?(): Promise<void>;
  /** Deletes up to `limit` effects that are older than `keepMs`, and returns how many it has deleted. */
  prune?(keepMs: number, limit: number): Promise<number>;
}

const DAY_MS = 86_400_000;
const DEFAULT_KEEP_MS = 400 * DAY_MS;
/** Effects are kept a little longer than promised, because clocks differ. */
const CLOCK_SLACK_MS = DAY_MS;
const PRUNE_BATCH_SIZE = 1_000;

/** Checks the options that all kinds of effects have, and fills in their defaults. */
export function checkCommonOptions({ scope = "", keepMs = DEFAULT_KEEP_MS }: EffectsOptions): Required<{
  readonly scope: string;
  readonly keepMs: number;
}> {
  checkTime("keepMs", keepMs);
  return { scope: checkScope(scope), keepMs };
}

/** Opens once. After a failure, the next call tries again. */
export function openOnce(open: () => Promise<void>): () => Promise<void> {
  let opening: Promise<void> | null = null;
  return () => {
    opening ??= emptyContext.run(open).catch((error: unknown) => {
      opening = null;
      throw error;
    });
    return opening;
  };
}

/** True if a claim has stored its id. Throws `ERR_EFFECT_ENDED` for an effect that has only begun. */
export function isClaimed({ found }: EffectInsertResult): boolean {
  if (found === "begun") throw transactionEndedError();
  return found === "nothing";
}

/**
 * Effects in any database with transactions and a unique key, through any client. Only `transaction`, `insert` and `finish` are
 * required.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`.
 * @example effects({ transaction: (work) => inTransaction(pool, work), insert, finish })
 */
export function effects<Tx>(client: OwnClient<Tx>, options: EffectsOptions = {}): Effects<EffectContext<Tx>> {
  return effectsOn(client, options, systemClock);
}

/** Makes {@link effects} on a given clock or environment. */
export function effectsOn<Tx>(
  client: OwnClient<Tx>,
  options: EffectsOptions,
  clock: Clock | Environment,
): Effects<EffectContext<Tx>> {
  for (const call of ["transaction", "insert", "finish"] as const) {
    if (typeof client?.[call] === "function") continue;
    throw new PayhooksError("ERR_OPTION_INVALID", `effects was given no ${call}.`, {
      fix: "Give it { transaction, insert, finish }; docs/guides/exactly-once.md has an example.",
    });
  }
  const { scope, keepMs } = checkCommonOptions(options);
  const environment = environmentOf(clock);
  const open = openOnce(async () => {
    try {
      await client.open?.();
    } catch (error) {
      const isAway = !isPayhooksError(error) && isClassifiedAs(client, "isUnavailable", error);
      throw isAway ? databaseUnavailableError(error) : error;
    }
  });
  const storage: EffectStorage = {
    scope,
    keepMs,
    isSync: false,
    async transact(id, fn, signal) {
      await open();
      return transact(client, id, fn as (tx: Tx) => unknown, signal, environment);
    },
    async claim(tx, id) {
      await open();
      return isClaimed(await client.insert(tx as Tx, id, "done"));
    },
  };
  return {
    keepMs,
    open,
    async prune() {
      const deleted = (await client.prune?.(keepMs + CLOCK_SLACK_MS, PRUNE_BATCH_SIZE)) ?? 0;
      return deleted >= PRUNE_BATCH_SIZE;
    },
    forRun: (run: EffectRun): RunEffects<EffectContext<Tx>> => effectsOfRun(storage, run),
  };
}
