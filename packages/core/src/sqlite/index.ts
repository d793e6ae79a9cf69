/**
 * The inbox for one machine, with no server: a SQLite file that survives kill -9.
 *
 * @module
 */

import type { Inbox } from "../inbox/contract/inbox.ts";
import type { Seal } from "../inbox/contract/seal.ts";
import { createInbox } from "../inbox/engine.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import { environmentOf } from "../time/environment.ts";
import type { SqliteHandle } from "./handle.ts";
import { type SqliteStoreOptions, sqliteStore } from "./store.ts";

export { type SqliteStoreOptions, sqliteStore } from "./store.ts";

/** Options of {@link sqliteInbox}. */
export interface SqliteInboxOptions extends SqliteStoreOptions {
  /** How long a process may be silent before another process takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** How often to poll for events that another process has accepted. Default 500 ms. */
  readonly pollMs?: number | undefined;
  /** Seals the stored data: `aesGcm` of `@payhooks/core/seal`. Default: it is stored in the clear. */
  readonly seal?: Seal | undefined;
}

/**
 * An inbox in a SQLite file. An acknowledged event survives kill -9 of any process and a crash of the machine: every
 * commit is on disk before it is answered. Several processes on one machine may share the file; it must not be on a
 * network file system.
 *
 * @param file a path, opened with the first of `node:sqlite`, `bun:sqlite`, libsql and better-sqlite3 that is there;
 * or an open synchronous handle of one of them, which `close` closes.
 * @throws PayhooksError at `ready()`: `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_SQLITE_UNSUITABLE`; with `existing`,
 * `ERR_INBOX_UNUSED`.
 * @example createReceiver({ payments: { publicKey }, inbox: sqliteInbox("payhooks.db") })
 */
export function sqliteInbox(
  file: string | SqliteHandle | undefined,
  options: SqliteInboxOptions = {},
): Inbox {
  checkNames("sqliteInbox", options, {
    leaseMs: true,
    pollMs: true,
    seal: true,
    clock: true,
    existing: true,
  });
  const { leaseMs, pollMs, seal, clock, existing } = options;
  checkFlag("existing of sqliteInbox", existing);
  const environment = environmentOf(clock);
  return createInbox(sqliteStore(file, { clock: environment, existing }), {
    leaseMs,
    pollMs,
    seal,
    clock: environment,
  });
}

export type { SqliteHandle } from "./handle.ts";
