import type { Cluster, Redis, RedisOptions } from "ioredis";
import { PayhooksError } from "../protocol/errors.ts";
import { isReadOnly } from "./answers.ts";

/** The target of a connection: a URL, or a connection of the program's own, which is copied. */
export type ConnectionTarget = string | Redis | Cluster;

/** Connections are shared by all inboxes of a process with the same URL, in whichever bundle they were loaded. */
interface Shared {
  users: number;
  /** Known before the connection is established. */
  connection: Redis | Cluster | null;
  readonly opening: Promise<Redis | Cluster>;
}

/** A function, so that printing `globalThis` shows no connections and no keys. Both contain passwords. */
type Registry = () => Map<string, Shared>;

const REGISTRY = Symbol.for("payhooks.redis");
const shelf = globalThis as { [REGISTRY]?: Registry };
shelf[REGISTRY] ??= hidden(new Map<string, Shared>());
const registry: Map<string, Shared> = shelf[REGISTRY]();

function hidden<T>(value: T): () => T {
  return () => value;
}

type Options = Omit<RedisOptions, "replyMapping">;

const CONNECT_TIMEOUT_MS = 2_000;
const MAX_RECONNECT_MS = 1_000;
/** Longer than any blocking command. */
const SOCKET_SILENCE_MS = 20_000;

/** These settings notice quickly that Redis is gone, and that it is back. */
const RECONNECT: Pick<RedisOptions, "retryStrategy" | "connectTimeout" | "reconnectOnError"> = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  retryStrategy: (times: number) => Math.min(50 * 2 ** times, MAX_RECONNECT_MS),
  // After a failover, the old primary refuses writes. Reconnecting leads to the new one.
  reconnectOnError: isReadOnly,
};

/** The connections of one inbox. Nothing is opened before it is needed. */
export interface Connections {
  /**
   * The connection for the path of a delivery. Its commands succeed or fail within `commandTimeoutMs`, and are never queued
   * while Redis is away.
   */
  fast(): Promise<Redis | Cluster>;
  /** A new connection for commands that block. It waits for as long as necessary. */
  blocking(): Promise<Redis | Cluster>;
  /** A new connection that never sends a command twice, and gives up on a command after twice `commandTimeoutMs`. */
  unrepeating(): Promise<Redis | Cluster>;
  close(): Promise<void>;
}

/** Opens connections to a target. */
export function connectionsTo(target: ConnectionTarget | undefined, commandTimeoutMs: number): Connections {
  const fastOptions: Options = {
    ...RECONNECT,
    lazyConnect: true,
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
    commandTimeout: commandTimeoutMs,
    // The other end may have gone silently. A connection that does not answer is replaced by a new one.
    socketTimeout: commandTimeoutMs,
  };
  const blockingOptions: Options = {
    ...RECONNECT,
    lazyConnect: true,
    maxRetriesPerRequest: null,
    socketTimeout: SOCKET_SILENCE_MS,
  };
  const unrepeatingOptions: Options = {
    ...fastOptions,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // The connection may be waiting for replicas.
    commandTimeout: 2 * commandTimeoutMs,
    socketTimeout: 2 * commandTimeoutMs,
  };
  const key = typeof target === "string" ? `${target} ${commandTimeoutMs}` : null;
  let own: Shared | null = null;
  const others = new Set<Redis | Cluster>();
  let isClosed = false;

  async function make(options: Options): Promise<Redis | Cluster> {
    if (typeof target === "string") {
      checkUrl(target);
      const RedisClass = await loadIoredis();
      return new RedisClass(target, options);
    }
    if (target === undefined || target === null) throw missingTarget();
    return isCluster(target)
      ? target.duplicate([], {
          lazyConnect: true,
          enableOfflineQueue: options.enableOfflineQueue ?? true,
          redisOptions: options,
        })
      : target.duplicate(options);
  }

  /** `opening` gets the connection before it is established, so that a close need not wait for it. It may throw. */
  async function open(
    options: Options,
    prepare: (single: Redis) => void,
    opening: (connection: Redis | Cluster) => void,
  ): Promise<Redis | Cluster> {
    const made = await make(options);
    refuseKeyPrefix(made);
    opening(made);
    if (isCluster(made)) made.on("+node", prepare);
    else prepare(made);
    let reason: unknown = null;
    // Commands report their own errors; a connection without a listener would end the process.
    made.on("error", (error) => {
      reason = error;
    });
    if (!isCluster(made)) {
      // Many commands may be refused at once. Disconnecting for the first is enough; each disconnect adds a listener.
      made.options.reconnectOnError = (error) => isReadOnly(error) && !made.stream?.writableEnded;
    }
    try {
      await made.connect();
      return made;
    } catch (error) {
      made.disconnect();
      // The reason why the connection was closed says more than the fact that it is closed.
      throw reason ?? error;
    }
  }

  /**
   * ioredis would prefix the names of keys, but not the pattern of a scan, nor the name that decides on the node of a cluster.
   */
  function refuseKeyPrefix(made: Redis | Cluster): void {
    const { keyPrefix } = isCluster(made) ? { ...made.options.redisOptions, ...made.options } : made.options;
    if (!keyPrefix) return;
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      `redisInbox was given a connection with the keyPrefix ${JSON.stringify(keyPrefix)}.`,
      { fix: "Leave keyPrefix out, and give redisInbox its own option instead: prefix." },
    );
  }

  async function openOther(options: Options): Promise<Redis | Cluster> {
    refuseWhenClosed();
    let made: Redis | Cluster | null = null;
    try {
      return await open(
        options,
        () => {},
        (connection) => {
          refuseWhenClosed();
          made = connection;
          others.add(connection);
        },
      );
    } catch (error) {
      if (made !== null) others.delete(made);
      throw error;
    }
  }

  function openShared(): Shared {
    const shared: Shared = {
      users: 0,
      connection: null,
      opening: open(fastOptions, gatherWrites, (connection) => {
        if (shared.users === 0) throw closed();
        shared.connection = connection;
      }),
    };
    return shared;
  }

  /** Refuses to open a connection after the close, because it would never be closed. */
  function refuseWhenClosed(): void {
    if (isClosed) throw closed();
  }

  return {
    async fast() {
      refuseWhenClosed();
      if (own === null) {
        const known = key === null ? undefined : registry.get(key);
        const shared = known ?? openShared();
        shared.users++;
        own = shared;
        if (key !== null) registry.set(key, shared);
        shared.opening.catch(() => {
          // The next delivery tries again.
          if (own === shared) own = null;
          if (key !== null && registry.get(key) === shared) registry.delete(key);
        });
      }
      return own.opening;
    },
    blocking: () => openOther(blockingOptions),
    unrepeating: () => openOther(unrepeatingOptions),
    async close() {
      isClosed = true;
      for (const connection of others) connection.disconnect();
      others.clear();
      const shared = own;
      own = null;
      if (shared === null || --shared.users > 0) return;
      if (key !== null && registry.get(key) === shared) registry.delete(key);
      shared.connection?.disconnect();
    },
  };
}

/** ioredis marks its clusters; `instanceof` would fail between two copies of it. */
export function isCluster(target: Redis | Cluster): target is Cluster {
  return "isCluster" in target && target.isCluster === true;
}

/** The connection to the node that has a slot now, as far as this is known. On a single server, the connection itself. */
export function nodeOf(connection: Redis | Cluster, slot: number): Redis | null {
  if (!isCluster(connection)) return connection;
  const [address] = connection.slots[slot] ?? [];
  const nodes = connection.nodes("master");
  return nodes.find(({ options: { host, port } }) => `${host}:${port}` === address) ?? null;
}

/**
 * Refuses an address that cannot be read, or that would be read as a different one. A `/`, `?` or `#` in a password
 * ends the host there, and the rest would be taken for a path.
 */
function checkUrl(target: string): void {
  // The address is a port, or the path of a socket.
  if (/^(?:\d+$|\/(?!\/))/.test(target)) return;
  const text = target.includes("://") ? target : `redis://${target.replace(/^\/\//, "")}`;
  if (isRedisUrl(text)) return;
  throw new PayhooksError("ERR_OPTION_INVALID", "The address that redisInbox was given cannot be read.", {
    fix: "Write it as redis://user:password@host:6379/0, with user and password percent-encoded (encodeURIComponent) if they contain characters such as / ? # or %.",
  });
}

function isRedisUrl(text: string): boolean {
  try {
    const { protocol, username, password, pathname, search, hash } = new URL(text);
    decodeURIComponent(username + password);
    return /^rediss?:$/.test(protocol) && !`${pathname}${search}${hash}`.includes("@");
  } catch {
    return false;
  }
}

function closed(): PayhooksError {
  return new PayhooksError("ERR_CLOSING", "The connections of redisInbox are closed.", {
    fix: "Make a new inbox.",
  });
}

function missingTarget(): PayhooksError {
  return new PayhooksError("ERR_OPTION_MISSING", "redisInbox was given no URL and no connection.", {
    fix: "Set it (check the environment variable), such as redis://localhost:6379. There is no default address.",
  });
}

async function loadIoredis(): Promise<typeof Redis> {
  try {
    const ioredis = await import("ioredis");
    // The webpack of Next.js gives a module that is a function its default name alone.
    return ioredis.Redis ?? ioredis.default;
  } catch (cause) {
    throw new PayhooksError(
      "ERR_PEER_MISSING",
      "redisInbox needs the package ioredis, which is not installed.",
      {
        fix: "Install it: npm install ioredis",
        cause,
      },
    );
  }
}

/** How many commands are gathered before they are written. */
const GATHERED = 8;

/**
 * Sends the commands of many deliveries in few system calls, which are most of what a command costs this process. It does not
 * gather all of them into one call, so that Redis works on the first ones while others are still being made.
 */
function gatherWrites(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  let corked: Redis["stream"] | null = null;
  let gathered = 0;
  function flush(): void {
    corked?.uncork();
    corked = null;
  }
  redis.sendCommand = (...args) => {
    if (corked === null && redis.stream !== undefined) {
      corked = redis.stream;
      corked.cork();
      gathered = 0;
      process.nextTick(flush);
    }
    const sent = send(...args);
    if (++gathered >= GATHERED) flush();
    return sent;
  };
}
