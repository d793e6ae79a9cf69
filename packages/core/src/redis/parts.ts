import { PayhooksError } from "../errors.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { IdempotencyStore, Queue } from "../inbox/store.ts";
import { consoleLogger, type Logger } from "../notices.ts";
import { replicaBarrier } from "./barrier.ts";
import { checkServer } from "./checks.ts";
import { connectionsTo, isCluster, type RedisTarget } from "./connections.ts";
import { bullQueue } from "./queue.ts";
import { type ScriptClient, scriptClient } from "./script-client.ts";
import { redisStore } from "./store.ts";

/** Options of {@link redisInbox}. */
export interface RedisInboxOptions {
  /** Begins every key. Default `payhooks`. */
  readonly prefix?: string | undefined;
  /** Replicas that must have an event before it is acknowledged. Default 0: the primary alone. Not with a cluster. */
  readonly replicas?: number | undefined;
  /** How long a worker may be silent before another takes its event. Default 30 s; renewed every third of it. */
  readonly leaseMs?: number | undefined;
  /** How often dead workers' jobs are taken back, and a worker that stands still is replaced. Default 15 s. */
  readonly stallCheckMs?: number | undefined;
  /** When a command on the path of a delivery is given up. Default 1.5 s; keep it below `acceptTimeoutMs`. */
  readonly commandTimeoutMs?: number | undefined;
  /** For the warnings of the start. Default: the console. */
  readonly logger?: Logger | undefined;
  /** Adds to the server's time, for tests of expiry. */
  readonly shiftMs?: (() => number) | undefined;
}

/** What `composeInbox` makes a Redis inbox of. */
export interface RedisParts {
  readonly store: IdempotencyStore;
  readonly queue: Queue;
  readonly durability: Inbox["durability"];
}

/**
 * The store and the queue of `redisInbox`, to wrap one of them before `composeInbox`, or to replace it.
 *
 * @experimental The interfaces of store and queue may still change in a minor release.
 */
export function redisParts(target: RedisTarget | undefined, options: RedisInboxOptions = {}): RedisParts {
  const {
    prefix = "payhooks",
    replicas = 0,
    leaseMs = 30_000,
    stallCheckMs = 15_000,
    commandTimeoutMs = 1_500,
    logger = consoleLogger,
    shiftMs,
  } = options;
  if (replicas > 0 && typeof target === "object" && target !== null && isCluster(target)) {
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      "replicas cannot be used with a cluster: records and jobs are on different nodes.",
      {
        fix: "Use one primary with replicas and Sentinel, or a cluster without the option.",
      },
    );
  }
  const connections = connectionsTo(target, commandTimeoutMs);
  let client: ScriptClient | null = null;
  const store = redisStore(
    async () => {
      client ??= scriptClient(await connections.fast());
      return client;
    },
    { prefix, shiftMs },
  );
  const barrier =
    replicas > 0
      ? replicaBarrier(() => connections.separate(), { prefix, replicas, timeoutMs: commandTimeoutMs })
      : undefined;
  const queue = bullQueue({
    connection: () => connections.fast(),
    workerConnection: () => connections.patient(),
    prefix,
    leaseMs,
    stallCheckMs,
    barrier,
  });
  let checked: Promise<void> | null = null;
  async function check(): Promise<void> {
    for (const warning of await checkServer(await connections.fast())) logger.warn(warning);
  }
  return {
    store: {
      ...store,
      async ready() {
        checked ??= check().catch((error: unknown) => {
          checked = null;
          throw error;
        });
        await checked;
        await store.ready();
      },
      async close() {
        await store.close();
        await connections.close();
      },
    },
    queue,
    durability: replicas > 0 ? "replicated" : "host",
  };
}
