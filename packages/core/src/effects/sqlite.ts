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
import { databaseAway, endedTransaction } from "./errors.ts";
import { guard } from "./guard.ts";
import { commonOptions, isClaimed, onceOpened } from "./own-client.ts";
import { type EffectStorage, effectsOfRun } from "./run.ts";
import { acceptsNoWrites, beginImmediate, rollBack, SqliteTable } from "./sqlite-table.ts";

export { sqliteEffectsSql } from "./sqlite-table.ts";

/** Options of {@link sqliteEffects}. */
export interface SqliteEffectsOptions extends EffectsOptions {
  /** The table. Default `payhooks_effects`. */
  readonly table?: string | undefined;
}

const DAY_MS = 86_400_000;
const PRUNE_STEP = 1_000;
const BUSY_RETRY_MS = 20;
const SAVEPOINT = "payhooks_effect";

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
  const { scope, keepMs } = commonOptions(options);
  const table = new SqliteTable(handle, options.table ?? "payhooks_effects");
  const open = onceOpened(() => whenFree(() => table.open()));

  /** Runs synchronously from BEGIN to COMMIT, so that no other code of this process runs in between. */
  function transact(id: string, fn: (tx: Handle) => unknown): EffectResult<unknown> {
    if (!begins(id)) return { ran: false, value: undefined };
    try {
      const value = call(fn);
      table.finish(id);
      handle.exec("COMMIT");
      return { ran: true, value };
    } catch (error) {
      rollBack(handle);
      throw hasCommitted(id) ? endedTransaction(error) : error;
    }
  }

  /** Opens the transaction, and stores the id as begun. False if the effect is done already. */
  function begins(id: string): boolean {
    try {
      beginImmediate(handle);
    } catch (error) {
      throw acceptsNoWrites(error) ? databaseAway(error) : error;
    }
    try {
      if (isClaimed(table.insert(id, "begun"))) return true;
    } catch (error) {
      rollBack(handle);
      throw acceptsNoWrites(error) ? databaseAway(error) : error;
    }
    rollBack(handle);
    return false;
  }

  /** Calls the function. Throws `ERR_EFFECT_ENDED` if the transaction has ended by then: the savepoint is gone with it. */
  function call(fn: (tx: Handle) => unknown): unknown {
    handle.exec(`SAVEPOINT ${SAVEPOINT}`);
    const { tx, end } = guard(handle);
    let value: unknown;
    try {
      value = fn(tx);
      if (isPromise(value)) throw asyncFunction();
    } catch (error) {
      // SQLite itself rolls back at some errors. If the function has thrown such an error, nothing was written after it.
      throw isSqliteError(error) || releases(handle) ? error : endedTransaction(error);
    } finally {
      end();
    }
    if (!releases(handle)) throw endedTransaction();
    return value;
  }

  /** True if code inside has committed the id while the effect had only begun. */
  function hasCommitted(id: string): boolean {
    try {
      return table.stored(id) === "begun";
    } catch {
      return false;
    }
  }

  const storage: EffectStorage = {
    scope,
    keepMs,
    isSync: true,
    async transact(id, fn, signal) {
      if (fn.constructor.name === "AsyncFunction") throw asyncFunction();
      await open();
      return whenFree(() => transact(id, fn as (tx: Handle) => unknown), signal);
    },
    claim: (tx, id) => isClaimed(new SqliteTable(tx as Handle, table.name).insert(id, "done")),
  };

  return {
    keepMs,
    open,
    async prune() {
      await open();
      const before = Date.now() - keepMs - DAY_MS;
      return (await whenFree(() => table.prune(before, PRUNE_STEP))) >= PRUNE_STEP;
    },
    forRun: (run) => effectsOfRun(storage, run),
  };
}

/** Tries again while another process writes, without blocking the event loop. */
async function whenFree<T>(work: () => T, signal?: AbortSignal): Promise<T> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      await sleep(systemClock, BUSY_RETRY_MS);
    }
  }
}

/** False if the savepoint is gone, and the transaction with it. */
function releases(handle: SqliteHandle): boolean {
  try {
    handle.exec(`RELEASE ${SAVEPOINT}`);
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

function asyncFunction(): PayhooksError {
  return new PayhooksError(
    "ERR_EFFECT_ASYNC",
    "The function of ctx.transaction is async, but the database is synchronous.",
    {
      fix: "Make it synchronous, because other code could use its transaction between two statements. Do asynchronous work before it.",
    },
  );
}
