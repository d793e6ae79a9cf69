/**
 * The inbox for several processes and machines, in MySQL or MariaDB.
 *
 * @module
 */

import type { Inbox } from "../inbox/contract/inbox.ts";
import type { Seal } from "../inbox/contract/seal.ts";
import { createInbox } from "../inbox/engine.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import { environmentOf } from "../time/environment.ts";
import type { MysqlTarget } from "./client.ts";
import { checkPrefix, migrationSql } from "./schema.ts";
import { type MysqlStoreOptions, mysqlStore } from "./store.ts";

export type { MysqlPool, MysqlTarget } from "./client.ts";
export { type MysqlStoreOptions, mysqlStore } from "./store.ts";

/** Options of {@link mysqlInbox}. */
export interface MysqlInboxOptions extends MysqlStoreOptions {
  /** How long a process may be silent before another process takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** How often a process that runs events polls for events of other processes. Default 500 ms. */
  readonly pollMs?: number | undefined;
  /** Seals the stored data: `aesGcm` of `@payhooks/core/seal`. Default: it is stored in the clear. */
  readonly seal?: Seal | undefined;
}

/**
 * An inbox in MySQL 8.0.17 or later, or MariaDB 10.6 or later, on InnoDB. An acknowledged event survives kill -9 of any process
 * and, with `innodb_flush_log_at_trx_commit` and `sync_binlog` at 1, a crash of the server's machine. Needs the peer `mysql2`.
 * `SELECT * FROM payhooks_events WHERE reference_id = 'order-17'` shows the events of an order.
 *
 * @param target a URL, or a pool of `mysql2` or `mysql2/promise`, whose address and user are used for three connections of the
 * inbox's own. There is no default address.
 * @throws PayhooksError `ERR_OPTION_INVALID`; at the start `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_MYSQL_UNSUITABLE`,
 * `ERR_INBOX_UNAVAILABLE`.
 * @example createReceiver({ inbox: mysqlInbox(pool) })
 */
export function mysqlInbox(target: MysqlTarget | undefined, options: MysqlInboxOptions = {}): Inbox {
  checkNames("mysqlInbox", options, {
    prefix: true,
    migrate: true,
    leaseMs: true,
    pollMs: true,
    seal: true,
    statementTimeoutMs: true,
    logger: true,
    clock: true,
  });
  checkFlag("migrate of mysqlInbox", options.migrate);
  const { leaseMs, pollMs, seal } = options;
  const clock = environmentOf(options.clock);
  return createInbox(mysqlStore(target, { ...options, clock }), { leaseMs, pollMs, seal, clock });
}

/**
 * The SQL that makes the tables, for `migrate: false`. Each statement is complete by itself, and does nothing if its
 * table exists.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`.
 */
export function mysqlMigration(prefix = "payhooks"): string {
  checkPrefix(prefix);
  return migrationSql(prefix)
    .map((statement) => `${statement};\n`)
    .join("");
}
