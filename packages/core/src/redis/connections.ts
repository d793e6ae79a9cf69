import type { Cluster, Redis, RedisOptions } from "ioredis";
import { PayhooksError } from "../protocol/errors.ts";
import { isReadOnly } from "./failure.ts";

/** The target of a connection: a URL, or a connection of the program's own, which is copied. */
export type ConnectionTarget = string | Redis | Cluster;

/** Connections are shared by all inboxes of a process with the same URL, in whichever bundle they were loaded. */
interface SharedConnection {
  users: number;
  /** Known before the connection is established. */
  connection: Redis | Cluster | null;
  readonly opening: Promise<Redis | Cluster>;
}

/** A function, so that printing `globalThis` shows no connections and no keys. Both contain passwords. */
type Registry = () => Map<string, SharedConnection>;

const REGISTRY_KEY = Symbol.for("payhooks.redis");
const globals = globalThis as { [REGISTRY_KEY]?: Registry };
globals[REGISTRY_KEY] ??= hide(new Map<string, SharedConnection>());
const registry: Map<string, SharedConnection> = globals[REGISTRY_KEY]();

function hide<T>(value: T): () => T {
  return () => value;
}

type Options = Omit<RedisOptions, "replyMapping">;

const CONNECT_TIMEOUT_MS = 2_000;
const MAX_RECONNECT_DELAY_MS = 1_000;
/** Longer than any blocking command. */
const BLOCKING_SOCKET_TIMEOUT_MS = 20_000;

/** These settings notice quickly that Redis is gone, and that it is back. */
const RECONNECT_OPTIONS: Pick<RedisOptions, "retryStrategy" | "connectTimeout" | "reconnectOnError"> = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  retryStrategy: (times: number) => Math.min(50 * 2 ** times, MAX_RECONNECT_DELAY_MS),
  // After a failover, the old primary refuses writes. Reconnecting leads to the new one.
  reconnectOnError: isReadOnly,
};

/** The connections of one inbox. Nothing is opened before it is needed. */
export interface Connections {
  /**
   * The connection for the path of a delivery. Its commands succeed or fail within `commandTimeoutMs`, and are never queued
   * while Redis is away.
   */
  commandConnection(): Promise<Redis | Cluster>;
  /** A new connection for commands that block. It waits for as long as necessary. */
  blockingConnection(): Promise<Redis | Cluster>;
  /** A new connection that never sends a command twice, and gives up on a command after twice `commandTimeoutMs`. */
  nonRetryingConnection(): Promise<Redis | Cluster>;
  close(): Promise<void>;
}

/** Opens connections to a target. */
export function connectionsTo(target: ConnectionTarget | undefined, commandTimeoutMs: number): Connections {
  const commandOptions: Options = {
    ...RECONNECT_OPTIONS,
    lazyConnect: true,
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
    commandTimeout: commandTimeoutMs,
    // The other end may have gone silently. A connection that does not answer is replaced by a new one.
    socketTimeout: commandTimeoutMs,
  };
  const blockingOptions: Options = {
    ...RECONNECT_OPTIONS,
    lazyConnect: true,
    maxRetriesPerRequest: null,
    socketTimeout: BLOCKING_SOCKET_TIMEOUT_MS,
  };
  const nonRetryingOptions: Options = {
    ...commandOptions,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // The connection may be waiting for replicas.
    commandTimeout: 2 * commandTimeoutMs,
    socketTimeout: 2 * commandTimeoutMs,
  };
  const key = typeof target === "string" ? `${target} ${commandTimeoutMs}` : null;
  let currentShared: SharedConnection | null = null;
  const otherConnections = new Set<Redis | Cluster>();
  let isClosed = false;

  async function makeConnection(options: Options): Promise<Redis | Cluster> {
    if (typeof target === "string") {
      checkUrl(target);
      const RedisClass = await loadIoredis();
      return new RedisClass(target, options);
    }
    if (target === undefined || target === null) throw targetMissingError();
    return isCluster(target)
      ? target.duplicate([], {
          lazyConnect: true,
          enableOfflineQueue: options.enableOfflineQueue ?? true,
          redisOptions: options,
        })
      : target.duplicate(options);
  }

  /** `onMade` gets the connection before it is established, so that a close need not wait for it. It may throw. */
  async function openConnection(
    options: Options,
    prepare: (single: Redis) => void,
    onMade: (connection: Redis | Cluster) => void,
  ): Promise<Redis | Cluster> {
    const newConnection = await makeConnection(options);
    refuseKeyPrefix(newConnection);
    onMade(newConnection);
    if (isCluster(newConnection)) newConnection.on("+node", prepare);
    else prepare(newConnection);
    let reason: unknown = null;
    // Commands report their own errors; a connection without a listener would end the process.
    newConnection.on("error", (error) => {
      reason = error;
    });
    if (!isCluster(newConnection)) {
      // Many commands may be refused at once. Disconnecting for the first is enough; each disconnect adds a listener.
      newConnection.options.reconnectOnError = (error) =>
        isReadOnly(error) && !newConnection.stream?.writableEnded;
    }
    try {
      await newConnection.connect();
      return newConnection;
    } catch (error) {
      newConnection.disconnect();
      // The reason why the connection was closed says more than the fact that it is closed.
      throw reason ?? error;
    }
  }

  /**
   * ioredis would prefix the names of keys, but not the pattern of a scan, nor the name that decides on the node of a cluster.
   */
  function refuseKeyPrefix(newConnection: Redis | Cluster): void {
    const { keyPrefix } = isCluster(newConnection)
      ? { ...newConnection.options.redisOptions, ...newConnection.options }
      : newConnection.options;
    if (!keyPrefix) return;
    throw new PayhooksError(
      "ERR_OPTION_INVALID",
      `redisInbox was given a connection with the keyPrefix ${JSON.stringify(keyPrefix)}.`,
      { fix: "Leave keyPrefix out, and give redisInbox its own option instead: prefix." },
    );
  }

  async function openOther(options: Options): Promise<Redis | Cluster> {
    refuseWhenClosed();
    let openedConnection: Redis | Cluster | null = null;
    try {
      return await openConnection(
        options,
        () => {},
        (connection) => {
          refuseWhenClosed();
          openedConnection = connection;
          otherConnections.add(connection);
        },
      );
    } catch (error) {
      if (openedConnection !== null) otherConnections.delete(openedConnection);
      throw error;
    }
  }

  function openShared(): SharedConnection {
    const sharedConnection: SharedConnection = {
      users: 0,
      connection: null,
      opening: openConnection(commandOptions, gatherWrites, (connection) => {
        if (sharedConnection.users === 0) throw connectionsClosedError();
        sharedConnection.connection = connection;
      }),
    };
    return sharedConnection;
  }

  /** Refuses to open a connection after the close, because it would never be closed. */
  function refuseWhenClosed(): void {
    if (isClosed) throw connectionsClosedError();
  }

  return {
    async commandConnection() {
      refuseWhenClosed();
      if (currentShared === null) {
        const registered = key === null ? undefined : registry.get(key);
        const sharedConnection = registered ?? openShared();
        sharedConnection.users++;
        currentShared = sharedConnection;
        if (key !== null) registry.set(key, sharedConnection);
        sharedConnection.opening.catch(() => {
          // The next delivery tries again.
          if (currentShared === sharedConnection) currentShared = null;
          if (key !== null && registry.get(key) === sharedConnection) registry.delete(key);
        });
      }
      return currentShared.opening;
    },
    blockingConnection: () => openOther(blockingOptions),
    nonRetryingConnection: () => openOther(nonRetryingOptions),
    async close() {
      isClosed = true;
      for (const connection of otherConnections) connection.disconnect();
      otherConnections.clear();
      const sharedConnection = currentShared;
      currentShared = null;
      if (sharedConnection === null || --sharedConnection.users > 0) return;
      if (key !== null && registry.get(key) === sharedConnection) registry.delete(key);
      sharedConnection.connection?.disconnect();
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

function connectionsClosedError(): PayhooksError {
  return new PayhooksError("ERR_CLOSING", "The connections of redisInbox are closed.", {
    fix: "Make a new inbox.",
  });
}

function targetMissingError(): PayhooksError {
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
const MAX_GATHERED_COMMANDS = 8;

/**
 * Sends the commands of many deliveries in few system calls, which are most of what a command costs this process. It does not
 * gather all of them into one call, so that Redis works on the first ones while others are still being made.
 */
function gatherWrites(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  let corkedStream: Redis["stream"] | null = null;
  let gatheredCount = 0;
  function flush(): void {
    corkedStream?.uncork();
    corkedStream = null;
  }
  redis.sendCommand = (...args) => {
    if (corkedStream === null && redis.stream !== undefined) {
      corkedStream = redis.stream;
      corkedStream.cork();
      gatheredCount = 0;
      process.nextTick(flush);
    }
    const result = send(...args);
    if (++gatheredCount >= MAX_GATHERED_COMMANDS) flush();
    return result;
  };
}
