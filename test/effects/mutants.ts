/**
 * The duties of effects, each with a change of the source that breaks it. The tests of effects have to notice every one of
 * these changes: `mutants.test.ts` runs them on the changed sources.
 */
export interface EffectMutant {
  readonly duty: string;
  /** The beginning of the name of the test that has to fail. */
  readonly caughtBy: string;
  /** Its path in `packages/core/src`. */
  readonly file: string;
  /** A text that occurs once in the file. */
  readonly find: string;
  readonly put: string;
}

const TRANSACTION = "effects/transaction.ts";
const RUN = "effects/run.ts";
const SQLITE = "effects/sqlite.ts";

export const EFFECT_MUTANTS: readonly EffectMutant[] = [
  {
    duty: "an effect that was committed before is skipped",
    caughtBy: "has the effect once",
    file: TRANSACTION,
    find: 'if (insertedEffect.found === "done") return { ran: false, value: undefined };',
    put: "",
  },
  {
    duty: "a transaction is no success if a swallowed error has aborted it",
    caughtBy: "does not commit after a swallowed statement error",
    file: TRANSACTION,
    find: "isDone = await this.#client.finish(tx, this.#id, insertedEffect);",
    put: "isDone = await this.#client.finish(tx, this.#id, insertedEffect).catch(() => true);",
  },
  {
    duty: "the event is held if the function ends the transaction itself",
    caughtBy: "holds the event, and calls nothing again, if the function",
    file: TRANSACTION,
    find: "if (await this.#hasEnded(tx, error)) this.failure = transactionEndedError(error);",
    put: "",
  },
  {
    duty: "the event is held if its effect was committed as begun",
    caughtBy: "finds in a later run that code inside has committed",
    file: TRANSACTION,
    find: 'if (insertedEffect.found === "begun") throw transactionEndedError();',
    put: 'if (insertedEffect.found === "begun") return { ran: false, value: undefined };',
  },
  {
    duty: "an effect is stored as done at the end of its transaction, not at the start",
    caughtBy: "finds in a later run that code inside has committed",
    file: TRANSACTION,
    find: 'this.#client.insert(tx, this.#id, "begun")',
    put: 'this.#client.insert(tx, this.#id, "done")',
  },
  {
    duty: "a claim does not take a begun effect for a done one",
    caughtBy: "holds an event whose effect was begun, and committed without its end",
    file: "effects/own-client.ts",
    find: 'if (found === "begun") throw transactionEndedError();',
    put: "",
  },
  {
    duty: "the event is held even if the handler catches the error",
    caughtBy: "holds it even if the handler",
    file: RUN,
    find: "if (isTransactionEndedError(error)) this.#endedError ??= error;",
    put: "",
  },
  {
    duty: "an unavailable database uses up no attempt",
    caughtBy: "waits for a database that accepts no writes",
    file: "receiver/handler-call.ts",
    find: "attempt: isCounted ? attempt : attempts, delayMs",
    put: "attempt, delayMs",
  },
  {
    duty: "a failure of the database uses up an attempt once the function was called",
    caughtBy: "counts a failure of the database once the function was called",
    file: TRANSACTION,
    find: '!attempt.hasCalled && failsAs("isUnavailable")',
    put: 'failsAs("isUnavailable")',
  },
  {
    duty: "waits for an unavailable database are bounded",
    caughtBy: "waits for a database that accepts no writes",
    file: "handlers/handler.ts",
    find: "const MAX_UNCOUNTED_BACKOFF_MS = 30_000;",
    put: "const MAX_UNCOUNTED_BACKOFF_MS = 3_000_000;",
  },
  {
    duty: "an effect that is found without an earlier run is reported",
    caughtBy: "says so if an effect is there although the inbox knows of no earlier run",
    file: "receiver/handler-call.ts",
    find: "unexpected: isFirst,",
    put: "unexpected: false,",
  },
  {
    duty: "SQLite: the event is held if the function ends the transaction itself",
    caughtBy: "hold the event, and call nothing again",
    file: SQLITE,
    find: "if (!releaseSavepoint(handle)) throw transactionEndedError();",
    put: "",
  },
  {
    duty: "SQLite: the event is held if the function commits and then throws",
    caughtBy: "hold the event, and call nothing again",
    file: SQLITE,
    find: "throw hasCommitted(id) ? transactionEndedError(error) : error;",
    put: "throw error;",
  },
  {
    duty: "SQLite: the event is held if the function rolls back and then throws",
    caughtBy: "hold the event, and call nothing again",
    file: SQLITE,
    find: "throw isSqliteError(error) || releaseSavepoint(handle) ? error : transactionEndedError(error);",
    put: "throw error;",
  },
  {
    duty: "SQLite: a transaction that SQLite itself has rolled back is tried again",
    caughtBy: "are tried again if",
    file: SQLITE,
    find: "throw isSqliteError(error) || releaseSavepoint(handle) ? error",
    put: "throw releaseSavepoint(handle) ? error",
  },
  {
    duty: "SQLite: the start tries to write to the table",
    caughtBy: "are refused at the start if",
    file: "effects/sqlite-table.ts",
    find: "      this.#tryOut();\n",
    put: "",
  },
  {
    duty: "SQLite: the start leaves no row in the table",
    caughtBy: "leave nothing behind at the start",
    file: "effects/sqlite-table.ts",
    find: "    } finally {\n      rollBack(this.#handle);",
    put: '      this.insert(id, "done");\n    } finally {\n      this.#handle.exec("COMMIT");',
  },
  {
    duty: "a second effect of a handler needs a name",
    caughtBy: "refuses a second effect without a name",
    file: RUN,
    find: "if (this.#committedIds.has(id) || this.#claimedIds.has(id)) throw effectReusedError();",
    put: "",
  },
  {
    duty: "the name of an effect is part of its id",
    caughtBy: "refuses a second effect without a name",
    file: "effects/effect-ids.ts",
    find: "...(name === null ? [] : [name])",
    put: "",
  },
  {
    duty: "a nested call is an error",
    caughtBy: "refuses a nested call",
    file: RUN,
    find: "if (this.#openTransaction !== null) {",
    put: "if (this.#openTransaction === undefined) {",
  },
  {
    duty: "a tx that is used after its end throws",
    caughtBy: "gives a transaction that throws once it has ended",
    file: "effects/guard.ts",
    find: "if (!isOpen) throw usedAfterEndError();",
    put: "",
  },
  {
    duty: "two receivers with scopes of their own can share a database",
    caughtBy: "do not meet where each has a scope",
    file: "effects/effect-ids.ts",
    find: '...(scope === "" ? [] : [scope]), ',
    put: "",
  },
  {
    duty: "a replay of a finished handler posts an effect-skipped notice",
    caughtBy: "of a finished handler says that its effect is skipped",
    file: RUN,
    find: "if (!result.ran) this.#run.onSkipped(id);",
    put: "",
  },
  {
    duty: "repeatEffects: true makes a new id",
    caughtBy: "has the effect once more with repeatEffects",
    file: "inbox/record/decisions.ts",
    find: "if (decision.repeatEffects === true) work.repeatEffects = true;",
    put: "if (decision.repeatEffects === true) delete work.repeatEffects;",
  },
  {
    duty: "effects are kept for 400 days, longer than records",
    caughtBy: "on day 60 still finds the effect",
    file: "effects/own-client.ts",
    find: "const DEFAULT_KEEP_MS = 400 * DAY_MS;",
    put: "const DEFAULT_KEEP_MS = 30 * DAY_MS;",
  },
  {
    duty: "a replay of an event older than keepMs is refused",
    caughtBy: "of an event older than keepMs is refused",
    file: RUN,
    find: "if (now - receivedAt > keepMs && !evenIfExpired) throw effectForgottenError(keepMs);",
    put: "",
  },
  {
    duty: "a transaction that deadlocks is repeated, and uses up no attempt",
    caughtBy: "repeats what the database wants repeated",
    file: TRANSACTION,
    find: 'if (!failsAs("isRepeatable"))',
    put: "",
  },
  {
    duty: "an abort rolls the transaction back",
    caughtBy: "rolls back when the handler's time is up",
    file: TRANSACTION,
    find: "const value = await Promise.race([this.#callFunction(tx), aborted]);",
    put: "const value = await this.#callFunction(tx);",
  },
  {
    duty: "an abort waits for a commit that is under way",
    caughtBy: "waits for a commit that is under way",
    file: TRANSACTION,
    find: "if (this.#hasBegun) return committed;",
    put: "",
  },
  {
    duty: "the run waits for a transaction that its handler does not wait for",
    caughtBy: "fails the handler that did not wait for it",
    file: RUN,
    find: "    await this.#openTransaction;",
    put: "",
  },
  {
    duty: "a second claim of an effect in the same run is an error",
    caughtBy: "refuses to find what this very run has claimed",
    file: RUN,
    find: "if (!isNew && (this.#claimedIds.has(id) || this.#committedIds.has(id))) throw effectReusedError();",
    put: "",
  },
  {
    duty: "a claim of an effect inside its own transaction is an error",
    caughtBy: "refuses a claim of the effect that its transaction is of",
    file: RUN,
    find: "if (id === this.#openId) throw effectReusedError();",
    put: "",
  },
  {
    duty: "SQLite effects refuse an async function",
    caughtBy: "refuse an async function",
    file: SQLITE,
    find: 'if (fn.constructor.name === "AsyncFunction") throw asyncCallbackError();',
    put: "",
  },
  {
    duty: "SQLite effects refuse a function that returns a promise",
    caughtBy: "refuse a function that returns a promise",
    file: SQLITE,
    find: "if (isPromise(value)) throw asyncCallbackError();",
    put: "",
  },
  {
    duty: "SQLite effects are refused on the inbox's own file",
    caughtBy: "are refused in the inbox's own file",
    file: "effects/sqlite-table.ts",
    find: "=== APPLICATION_ID",
    put: "=== -1",
  },
];
