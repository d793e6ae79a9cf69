/**
 * The inbox for several processes and machines: records in Redis, jobs in BullMQ on the same Redis.
 *
 * @module
 */
import { composeInbox } from "../inbox/compose.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { RedisTarget } from "./connections.ts";
import { type RedisInboxOptions, redisParts } from "./parts.ts";

export type { RedisTarget } from "./connections.ts";
export { type RedisInboxOptions, type RedisParts, redisParts } from "./parts.ts";
export type { ScriptClient } from "./script-client.ts";
export { type RedisStoreOptions, redisStore } from "./store.ts";

/**
 * An inbox in Redis. An acknowledged event survives kill -9 of any process; a restart of Redis as far as its fsync
 * goes; a failover with `replicas: 1`. Needs the peers `ioredis` (5 or 6) and `bullmq` (≥ 6.3.4).
 *
 * @param target a URL, or an ioredis connection or cluster, of which copies with the right settings are made.
 * @throws PayhooksError at `ready()`: `ERR_OPTION_MISSING`, `ERR_PEER_MISSING`, `ERR_REDIS_UNSUITABLE`.
 * @example createReceiver({ payments: { publicKey }, inbox: redisInbox(process.env.REDIS_URL) })
 */
export function redisInbox(target: RedisTarget | undefined, options: RedisInboxOptions = {}): Inbox {
  return composeInbox({ ...redisParts(target, options), leaseMs: options.leaseMs });
}
