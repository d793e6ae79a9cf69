import { PayhooksError } from "../protocol/errors.ts";

/** `createReceiver` was given no `effects`. */
export function effectsOff(call: "transaction" | "claimEffect"): PayhooksError {
  return new PayhooksError("ERR_EFFECTS_OFF", `ctx.${call} was called, but the receiver has no effects.`, {
    fix: "Give createReceiver the option effects, such as pgEffects(pool).",
  });
}

/** The transaction in which `fn` ended is not the one that stored the effect's id. */
export function brokenTransaction(cause?: unknown): PayhooksError {
  return new PayhooksError(
    "ERR_EFFECT_TRANSACTION",
    "The transaction that stored the effect's id had ended, or was aborted, before it could be committed.",
    {
      fix: "Do not catch the error of a failed statement, or put statements that may fail into a savepoint. Leave commit and rollback to ctx.transaction.",
      cause,
    },
  );
}

/** A transaction was used after its end. */
export function usedAfterEnd(): PayhooksError {
  return new PayhooksError("ERR_EFFECT_TRANSACTION", "A transaction was used after its end.", {
    fix: "Wait for everything that uses tx before the function of ctx.transaction returns, and do not keep tx.",
  });
}

/** The table of effects cannot be used. */
export function unsuitableEffects(what: string, fix: string, cause?: unknown): PayhooksError {
  return new PayhooksError("ERR_EFFECTS_UNSUITABLE", what, { fix, cause });
}
