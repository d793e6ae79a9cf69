/**
 * The inbox for several processes and machines, in PostgreSQL.
 *
 * @module
 */

import type { Inbox } from "../inbox/contract/inbox.ts";
import type { Seal } from "../inbox/contract/seal.ts";
import { createInbox } from "../inbox/engine.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import { environmentOf } from "../time/environment.ts";
import type { PostgresTarget } from "./client.ts";
import { checkSchemaName, migrationSql } from "./schema.ts";
import { type PostgresStoreOptions, postgresStore } from "./store.ts";

export type { PostgresPool, PostgresTarget, QueryClient } from "./client.ts";
export { type PostgresStoreOptions, postgresStore } from "./store.ts";

/** Options of {@link postgresInbox}. */
export interface PostgresInboxOptions extends PostgresStoreOptions {
  /** How long a process may be silent before another process takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** How often a process that runs events polls for events of other processes. Default 500 ms. */
  readonly pollMs?: number | undefined;
  /** Seals the stored data: `aesGcm` of `@payhooks/core/seal`. Default: it is stored in the clear. */
  readonly seal?: Seal | undefined;
}

/**
 * An inbox in PostgreSQL 13 or later. An acknowledged event survives kill -9 of any process and a crash of the server's
 * machine. It survives a failover if the server waits for its standby (`synchronous_standby_names`). Needs the peer `pg`,
 * unless it is given a client of another kind. `SELECT * FROM payhooks.events WHERE reference_id = 'order-17'` shows the events
 * of an order.
 *
 * @param target a URL; a pool of `pg`, whose settings are used for three connections of the inbox's own; or any client with
 * `query(text, values)`, such as PGlite, which is used as it is. With such a client, events of other processes are found only
 * by polling, every `pollMs`.
 * @throws PayhooksError `ERR_OPTION_INVALID`; at `ready()` `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_POSTGRES_UNSUITABLE`.
 * @example createReceiver({ payments: { publicKey }, inbox: postgresInbox(pool) })
 */
export function postgresInbox(target: PostgresTarget | undefined, options: PostgresInboxOptions = {}): Inbox {
  checkNames("postgresInbox", options, {
    schema: true,
    migrate: true,
    pooled: true,
    leaseMs: true,
    pollMs: true,
    seal: true,
    statementTimeoutMs: true,
    logger: true,
    clock: true,
  });
  checkFlag("migrate of postgresInbox", options.migrate);
  checkFlag("pooled of postgresInbox", options.pooled);
  const { leaseMs, pollMs, seal } = options;
  const clock = environmentOf(options.clock);
  return createInbox(postgresStore(target, { ...options, clock }), { leaseMs, pollMs, seal, clock });
}

/**
 * The SQL that makes the tables, for `migrate: false`. It is one statement, for a role that may create schemas. It does nothing
 * if the tables exist already.
 *
 * @throws PayhooksError `ERR_OPTION_INVALID`.
 */
export function postgresMigration(schema = "payhooks"): string {
  checkSchemaName(schema);
  return `${migrationSql(schema)};\n`;
}
