/**
 * The inbox for one machine, with no server: a SQLite file that survives kill -9.
 *
 * @module
 */
import { type Clock, systemClock } from "../clock.ts";
import { PayhooksError } from "../errors.ts";
import { composeInbox } from "../inbox/compose.ts";
import { withOwnErrors } from "../inbox/failures.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { IdempotencyStore, Queue } from "../inbox/store.ts";
import { Batch } from "./batch.ts";
import { deferredInbox } from "./deferred.ts";
import { openDatabase, type SqliteDatabase, type SqliteHandle } from "./driver.ts";
import { sqliteQueue } from "./queue.ts";
import { Records } from "./records.ts";
import { prepareSchema } from "./schema.ts";
import { sqliteStore } from "./store.ts";

export type { SqliteHandle } from "./driver.ts";

/** Options of {@link sqliteInbox}. */
export interface SqliteInboxOptions {
  /** How long a worker may be silent before another takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** How often jobs that another process added are looked for. Default 500 ms. */
  readonly pollMs?: number | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/**
 * An inbox in a SQLite file. An acknowledged event survives kill -9 of any process and a crash of the machine: every
 * commit is on disk before it is answered. Several processes on one machine may share the file; it must not lie on
 * a network file system.
 *
 * @param file a path, opened with the first of `node:sqlite`, `bun:sqlite`, libsql and better-sqlite3 that is there;
 * or an open synchronous handle of one of them, which `close` closes.
 * @throws PayhooksError at `ready()`: `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_SQLITE_UNSUITABLE`.
 * @example createReceiver({ payments: { publicKey }, inbox: sqliteInbox("payhooks.db") })
 */
export function sqliteInbox(
  file: string | SqliteHandle | undefined,
  options: SqliteInboxOptions = {},
): Inbox {
  const { leaseMs = 30_000, pollMs = 500, clock = systemClock } = options;
  const deferred = deferredInbox("host", async () => {
    if (file === undefined || file === "") {
      throw new PayhooksError("ERR_OPTION_MISSING", "sqliteInbox was given no file.", {
        fix: 'Name one that outlives the process, such as sqliteInbox("/var/lib/app/payhooks.db").',
      });
    }
    const database = typeof file === "string" ? await openDatabase(file) : file;
    try {
      const parts = await whenFree(() => sqliteParts(database, { leaseMs, pollMs, clock }));
      return composeInbox({ ...parts, durability: "host", leaseMs, clock });
    } catch (error) {
      // A handle of the caller's own stays open, so that this can be tried again.
      if (typeof file === "string") database.close();
      throw error;
    }
  });
  return withOwnErrors(deferred);
}

/** How long the start waits for other processes that start on the same file. */
const START_LIMIT_MS = 5_000;
const START_PAUSE_MS = 20;

/** Tries again while another process holds the file, without blocking the event loop meanwhile. */
async function whenFree<T>(open: () => T): Promise<T> {
  const end = performance.now() + START_LIMIT_MS;
  for (;;) {
    try {
      return open();
    } catch (error) {
      const held = error instanceof PayhooksError && error.code === "ERR_INBOX_UNAVAILABLE";
      if (!held || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, START_PAUSE_MS));
    }
  }
}

/**
 * The store and the queue of {@link sqliteInbox}, on one open handle, for `composeInbox`.
 *
 * @experimental The interfaces of store and queue may still change in a minor release.
 * @throws PayhooksError `ERR_SQLITE_UNSUITABLE`, `ERR_INBOX_UNAVAILABLE` while another process holds the file.
 */
export function sqliteParts(
  handle: SqliteHandle,
  { leaseMs = 30_000, pollMs = 500, clock = systemClock }: SqliteInboxOptions = {},
): { readonly store: IdempotencyStore; readonly queue: Queue } {
  const database = handle as SqliteDatabase;
  prepareSchema(database);
  const rows = new Records(database);
  const file = { database, rows, batch: new Batch(database, rows), clock };
  const queue = sqliteQueue(file, { leaseMs, pollMs });
  return { store: sqliteStore(file, () => queue.wake()), queue };
}
