/**
 * Effects in SQLite, through an open synchronous handle: `sqliteEffects(handle)`.
 *
 * @module
 */

import { checkNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { propertyOf, stringOf } from "../protocol/foreign-value.ts";
import { isBusy } from "../sqlite/failure.ts";
import type { SqliteHandle } from "../sqlite/handle.ts";
import { sleep, systemClock } from "../time/clock.ts";
import type { EffectContext, EffectResult } from "./context.ts";
import type { Effects, EffectsOptions } from "./effects.ts";
import { databaseUnavailableError, transactionEndedError } from "./errors.ts";
import { guard } from "./guard.ts";
import { checkCommonOptions, isClaimed, openOnce } from "./own-client.ts";
import { type EffectStorage, effectsOfRun } from "./run.ts";
import { beginImmediate, isWriteRefused, rollBack, SqliteTable } from "./sqlite-table.ts";

export { sqliteEffectsSql } from "./sqlite-table.ts";

/** Options of {@link sqliteEffects}. */
export interface SqliteEffectsOptions extends EffectsOptions {
  /** The table. Default `payhooks_effects`. */
  readonly table?: string | undefined;
}

const DAY_MS = 86_400_000;
const PRUNE_BATCH_SIZE = 1_000;
const BUSY_RETRY_PAUSE_MS = 20;
const SAVEPOINT_NAME = "payhooks_effect";

/**
 * Effects in SQLite, through the application's own handle: `node:sqlite`, better-sqlite3, libsql or `bun:sqlite`. A handle is
 * one connection, so the function of `ctx.transaction` must be synchronous. During an async function, other code could use its
 * transaction. The inbox's own file is refused.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_EFFECTS_UNSUITABLE`.
 * @example createReceiver({ payments, inbox: sqliteInbox("payhooks.db"), effects: sqliteEffects(new Database("shop.db")) })
 */
export function sqliteEffects<Handle extends SqliteHandle>(
  handle: Handle,
  options: SqliteEffectsOptions = {},
): Effects<EffectContext<Handle, true>> {
  checkNames("sqliteEffects", options, { table: true, scope: true, keepMs: true });
  const { scope, keepMs } = checkCommonOptions(options);
  const table = new SqliteTable(handle, options.table ?? "payhooks_effects");
  const open = openOnce(() => retryWhileLocked(() => table.open()));

  /** Runs synchronously from BEGIN to COMMIT, so that no other code of this process runs in between. */
  function transact(id: string, fn: (tx: Handle) => unknown): EffectResult<unknown> {
    if (!beginEffect(id)) return { ran: false, value: undefined };
    try {
      const value = callInSavepoint(fn);
      table.finish(id);
      handle.exec("COMMIT");
      return { ran: true, value };
    } catch (error) {
      rollBack(handle);
      throw hasCommitted(id) ? transactionEndedError(error) : error;
    }
  }

  /** Opens the transaction, and stores the id as begun. False if the effect is done already. */
  function beginEffect(id: string): boolean {
    try {
      beginImmediate(handle);
    } catch (error) {
      throw isWriteRefused(error) ? databaseUnavailableError(error) : error;
    }
    try {
      if (isClaimed(table.insert(id, "begun"))) return true;
    } catch (error) {
      rollBack(handle);
      throw isWriteRefused(error) ? databaseUnavailableError(error) : error;
    }
    rollBack(handle);
    return false;
  }

  /** Calls the function. Throws `ERR_EFFECT_ENDED` if the transaction has ended by then: the savepoint is gone with it. */
  function callInSavepoint(fn: (tx: Handle) => unknown): unknown {
    handle.exec(`SAVEPOINT ${SAVEPOINT_NAME}`);
    const { tx, end } = guard(handle);
    let value: unknown;
    try {
      value = fn(tx);
      if (isPromise(value)) throw asyncCallbackError();
    } catch (error) {
      // SQLite itself rolls back at some errors. If the function has thrown such an error, nothing was written after it.
      throw isSqliteError(error) || releaseSavepoint(handle) ? error : transactionEndedError(error);
    } finally {
      end();
    }
    if (!releaseSavepoint(handle)) throw transactionEndedError();
    return value;
  }

  /** True if code inside has committed the id while the effect had only begun. */
  function hasCommitted(id: string): boolean {
    try {
      return table.stateOf(id) === "begun";
    } catch {
      return false;
    }
  }

  const storage: EffectStorage = {
    scope,
    keepMs,
    isSync: true,
    async transact(id, fn, signal) {
      if (fn.constructor.name === "AsyncFunction") throw asyncCallbackError();
      await open();
      return retryWhileLocked(() => transact(id, fn as (tx: Handle) => unknown), signal);
    },
    claim: (tx, id) => isClaimed(new SqliteTable(tx as Handle, table.name).insert(id, "done")),
  };

  return {
    keepMs,
    open,
    async prune() {
      await open();
      const before = Date.now() - keepMs - DAY_MS;
      return (await retryWhileLocked(() => table.prune(before, PRUNE_BATCH_SIZE))) >= PRUNE_BATCH_SIZE;
    },
    forRun: (run) => effectsOfRun(storage, run),
  };
}

/** Tries again while another process writes, without blocking the event loop. */
async function retryWhileLocked<T>(work: () => T, signal?: AbortSignal): Promise<T> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      await sleep(systemClock, BUSY_RETRY_PAUSE_MS);
    }
  }
}

/** False if the savepoint is gone, and the transaction with it. */
function releaseSavepoint(handle: SqliteHandle): boolean {
  try {
    handle.exec(`RELEASE ${SAVEPOINT_NAME}`);
    return true;
  } catch {
    return false;
  }
}

/** Drivers name SQLite in the class or the code of an error. */
function isSqliteError(error: unknown): boolean {
  return ["name", "code"].some((name) => /sqlite/i.test(stringOf(propertyOf(error, name))));
}

function isPromise(value: unknown): boolean {
  return (
    typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function"
  );
}

function asyncCallbackError(): PayhooksError {
  return new PayhooksError(
    "ERR_EFFECT_ASYNC",
    "The function of ctx.transaction is async, but the database is synchronous.",
    {
      fix: "Make it synchronous, because other code could use its transaction between two statements. Do asynchronous work before it.",
    },
  );
}
