import { markUncounted, markUnrepeatable } from "../handlers/handler.ts";
import { isPayhooksError, PayhooksError } from "../protocol/errors.ts";
import { describeError } from "../protocol/foreign-error.ts";

/** The receiver has no option `effects`. */
export function effectsOffError(call: "transaction" | "claimEffect"): PayhooksError {
  return new PayhooksError("ERR_EFFECTS_OFF", `ctx.${call} was called, but the receiver has no effects.`, {
    fix: "Give createReceiver the option effects, such as pgEffects(pool).",
  });
}

/** The transaction cannot be completed, and nothing of it is committed: a later attempt may succeed. */
export function transactionAbortedError(cause?: unknown): PayhooksError {
  const reason = cause === undefined ? "its connection was lost" : describeError(cause);
  return new PayhooksError(
    "ERR_EFFECT_TRANSACTION",
    `The transaction was aborted, before it could be committed (${reason}). It was rolled back.`,
    {
      fix: "Do not catch the error of a failed statement, or put statements that may fail into a savepoint. Do not make the transaction read-only.",
      cause,
    },
  );
}

/** Code inside of the transaction has ended it, so it is not known which part of the effect is committed. */
export function transactionEndedError(cause?: unknown): PayhooksError {
  return markUnrepeatable(
    new PayhooksError(
      "ERR_EFFECT_ENDED",
      "The function of ctx.transaction, or code that it calls, has committed or rolled back the transaction. A part of the effect may be committed without the rest.",
      {
        fix: "Take COMMIT, ROLLBACK and BEGIN out of that code. Find out which part of the effect was committed. Then complete it by hand and discard the event; or undo that part and replay the event with repeatEffects: true.",
        cause,
      },
    ),
  );
}

/** True for the error of {@link transactionEndedError}. */
export function isTransactionEndedError(error: unknown): error is PayhooksError {
  return isPayhooksError(error) && error.code === "ERR_EFFECT_ENDED";
}

/**
 * The database has accepted the statement that stores or completes an effect's id, but has not carried it
 * out.
 */
export function idNotStoredError(table: string): PayhooksError {
  return effectsUnsuitableError(
    `The id of an effect was not stored in ${table}, although the statement succeeded.`,
    `Remove the trigger, rule or row-level policy of ${table} that swallows or changes its rows. Check whether code in ctx.transaction writes to it.`,
  );
}

/**
 * The database could not accept the effect, and has changed nothing. The call does not count as an attempt.
 */
export function databaseUnavailableError(cause: unknown): PayhooksError {
  return markUncounted(
    new PayhooksError(
      "ERR_EFFECTS_UNAVAILABLE",
      `The database of the effects cannot be reached, or accepts no writes now: ${describeError(cause)}. Nothing was done.`,
      {
        fix: "It may be down, full, read-only, or a standby. Handlers wait until it accepts writes, and that uses up no attempt.",
        cause,
      },
    ),
  );
}

/** A transaction was used after its end. */
export function usedAfterEndError(): PayhooksError {
  return new PayhooksError("ERR_EFFECT_TRANSACTION", "A transaction was used after its end.", {
    fix: "Wait for everything that uses tx before the function of ctx.transaction returns, and do not keep tx.",
  });
}

/** The table of effects cannot be used. */
export function effectsUnsuitableError(problem: string, fix: string, cause?: unknown): PayhooksError {
  return new PayhooksError("ERR_EFFECTS_UNSUITABLE", problem, { fix, cause });
}
