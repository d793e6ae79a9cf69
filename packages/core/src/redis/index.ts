/**
 * The inbox for several processes and machines, in Redis.
 *
 * @module
 */

import type { Inbox } from "../inbox/contract/inbox.ts";
import type { Seal } from "../inbox/contract/seal.ts";
import { createInbox } from "../inbox/engine.ts";
import { checkFlag, checkNames } from "../protocol/check-names.ts";
import { environmentOf } from "../time/environment.ts";
import { type RedisStoreOptions, type RedisTarget, redisStore } from "./store.ts";

export type { ScriptClient } from "./script-client.ts";
export { type RedisStoreOptions, type RedisTarget, redisStore } from "./store.ts";

/** Options of {@link redisInbox}. */
export interface RedisInboxOptions extends RedisStoreOptions {
  /** How long a process may be silent before another process takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** How often a process that runs events polls for events of other processes. Default 500 ms. */
  readonly pollMs?: number | undefined;
  /** Seals the stored data: `aesGcm` of `@payhooks/core/seal`. Default: it is stored in the clear. */
  readonly seal?: Seal | undefined;
}

/**
 * An inbox in Redis. An acknowledged event survives kill -9 of any process. It survives a crash of Redis if Redis had written
 * it to disk by then (`appendfsync`), and a failover with `replicas: 1`. Needs the peer `ioredis` (5 or 6), unless it is given
 * a client of another kind.
 *
 * @param target a URL; an ioredis connection or cluster, of which copies with the right settings are made; or any client that
 * runs scripts, which is used as it is. With such a client, events of other processes are found only by polling, every
 * `pollMs`.
 * @throws PayhooksError `ERR_OPTION_INVALID`; at `ready()` `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_REDIS_UNSUITABLE`.
 * @example createReceiver({ payments: { publicKey }, inbox: redisInbox(process.env.REDIS_URL) })
 */
export function redisInbox(target: RedisTarget | undefined, options: RedisInboxOptions = {}): Inbox {
  checkNames("redisInbox", options, {
    prefix: true,
    replicas: true,
    leaseMs: true,
    pollMs: true,
    seal: true,
    commandTimeoutMs: true,
    existing: true,
    logger: true,
    clock: true,
  });
  checkFlag("existing of redisInbox", options.existing);
  const { leaseMs, pollMs, seal } = options;
  const clock = environmentOf(options.clock);
  return createInbox(redisStore(target, { ...options, clock }), { leaseMs, pollMs, seal, clock });
}
