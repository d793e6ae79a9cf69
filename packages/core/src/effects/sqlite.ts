/**
 * Effects in SQLite, through an open synchronous handle: `sqliteEffects(handle)`.
 *
 * @module
 */

import { checkNames } from "../protocol/check-names.ts";
import { PayhooksError } from "../protocol/errors.ts";
import { isBusy } from "../sqlite/failure.ts";
import type { SqliteHandle, SqliteStatement } from "../sqlite/handle.ts";
import { APPLICATION_ID } from "../sqlite/schema.ts";
import { sleep, systemClock } from "../time/clock.ts";
import type { EffectContext, EffectResult } from "./context.ts";
import type { Effects, EffectsOptions } from "./effects.ts";
import { brokenTransaction, unsuitableEffects } from "./errors.ts";
import { guard } from "./guard.ts";
import { commonOptions, onceOpened } from "./own-client.ts";
import { checkTable } from "./postgres-table.ts";
import { type EffectStorage, effectsOfRun } from "./run.ts";

/** Options of {@link sqliteEffects}. */
export interface SqliteEffectsOptions extends EffectsOptions {
  /** The table. Default `payhooks_effects`. */
  readonly table?: string | undefined;
}

const DAY_MS = 86_400_000;
const PRUNE_STEP = 1_000;
const BUSY_RETRY_MS = 20;
const SAVEPOINT = "payhooks_effect";

/** The SQL that makes the table, for migrations of your own. */
export function sqliteEffectsSql(table: string = "payhooks_effects"): readonly string[] {
  const name = checkTable(table);
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (id TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS ${name}_by_at ON ${name} (at)`,
  ];
}

/**
 * Effects in SQLite, through the application's own handle: `node:sqlite`, better-sqlite3, libsql or `bun:sqlite`. A handle is
 * one connection, so the function of `ctx.transaction` must be synchronous. During an async one, other code could use its
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
  const { table = "payhooks_effects" } = options;
  checkTable(table);
  const prepare = (on: SqliteHandle, sql: string): SqliteStatement => on.prepare(sql) as SqliteStatement;

  const insert = (on: SqliteHandle, id: string): boolean => {
    const sql = `INSERT INTO ${table} (id, at) VALUES (?, ?) ON CONFLICT DO NOTHING`;
    const { changes } = prepare(on, sql).run(id, Date.now()) as { readonly changes: number | bigint };
    return Number(changes) === 1;
  };

  /** Runs synchronously from BEGIN to COMMIT, so that no other code of this process runs in between. */
  function transact(id: string, fn: (tx: Handle) => unknown): EffectResult<unknown> {
    begin(handle);
    try {
      const result = inTransaction(id, fn);
      handle.exec("COMMIT");
      return result;
    } catch (error) {
      rollBack(handle);
      throw error;
    }
  }

  function inTransaction(id: string, fn: (tx: Handle) => unknown): EffectResult<unknown> {
    if (!insert(handle, id)) return { ran: false, value: undefined };
    handle.exec(`SAVEPOINT ${SAVEPOINT}`);
    const { tx, end } = guard(handle);
    try {
      const value = fn(tx);
      if (isPromise(value)) throw asyncFunction();
      release(handle);
      return { ran: true, value };
    } finally {
      end();
    }
  }

  const open = onceOpened(async () => {
    const found = prepare(handle, "PRAGMA application_id").get() as Record<string, unknown> | undefined;
    if (Number(Object.values(found ?? {})[0]) === APPLICATION_ID) {
      throw unsuitableEffects(
        "The file is that of the inbox.",
        "Use your application's own file, where an effect is committed together with your rows.",
      );
    }
    await whenFree(() => {
      for (const statement of sqliteEffectsSql(table)) handle.exec(statement);
    });
  });

  const storage: EffectStorage = {
    scope,
    keepMs,
    isSync: true,
    async transact(id, fn, signal) {
      if (fn.constructor.name === "AsyncFunction") throw asyncFunction();
      await open();
      return whenFree(() => transact(id, fn as (tx: Handle) => unknown), signal);
    },
    claim: (tx, id) => insert(tx as Handle, id),
  };

  return {
    keepMs,
    open,
    async prune() {
      await open();
      const sql = `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE at < ? ORDER BY at LIMIT ${PRUNE_STEP})`;
      const before = Date.now() - keepMs - DAY_MS;
      const { changes } = (await whenFree(() => prepare(handle, sql).run(before))) as {
        readonly changes: number | bigint;
      };
      return Number(changes) >= PRUNE_STEP;
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

function begin(handle: SqliteHandle): void {
  try {
    handle.exec("BEGIN IMMEDIATE");
  } catch (error) {
    if (isBusy(error) || !/within a transaction/i.test(String(error))) throw error;
    throw new PayhooksError("ERR_EFFECT_TRANSACTION", "The handle is in a transaction already.", {
      fix: "Give effects a handle of their own, or call ctx.claimEffect(tx) inside your transaction.",
      cause: error,
    });
  }
}

/** Fails if the function has committed, or if an error made SQLite roll back by itself. The savepoint is gone then. */
function release(handle: SqliteHandle): void {
  try {
    handle.exec(`RELEASE ${SAVEPOINT}`);
  } catch (cause) {
    throw brokenTransaction(cause);
  }
}

function rollBack(handle: SqliteHandle): void {
  try {
    handle.exec("ROLLBACK");
  } catch {
    // There is no transaction any more.
  }
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
      fix: "Make it synchronous, since other code could use its transaction between two statements. Do asynchronous work before it.",
    },
  );
}
