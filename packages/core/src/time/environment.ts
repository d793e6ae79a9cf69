import { emptyContext } from "./async-context.ts";
import { type Clock, systemClock } from "./clock.ts";

/**
 * Everything that an inbox and its store take from outside: time, timers, turns of the event loop and randomness. A simulator
 * passes its own, and so controls all of it. Timers and later turns run in the empty asynchronous context.
 */
export interface Environment extends Clock {
  /** Calls back once, after what is running now and before any timer. */
  nextTurn(callback: () => void): void;
  /** Keeps the process alive until the returned function is called. */
  keepAlive(): () => void;
  /** Makes a text that no other call in any process gets: 12 to 16 letters, digits, `-` and `_`. */
  token(): string;
}

/**
 * On Workers, a timer or an immediate ends with the request that set it. So nothing that is meant for other requests may wait for
 * one.
 */
export const ON_WORKERS: boolean =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === "Cloudflare-Workers";

const PROCESS_BYTES = 7;

/** Makes the tokens of one process: a random prefix of its own, and a count. */
export function tokenMaker(prefix: string): () => string {
  let count = 0;
  return () => prefix + (count++).toString(36).padStart(3, "0");
}

function makeProcessPrefix(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(PROCESS_BYTES))).toString("base64url");
}

/** Made at the first token, because Workers refuse randomness while a module is loaded. */
let nextToken: (() => string) | null = null;

const MAX_INTERVAL_MS = 2_147_483_647;

const systemParts: Pick<Environment, "nextTurn" | "keepAlive" | "token"> = {
  nextTurn: (callback) => void emptyContext.run(() => setImmediate(callback)),
  keepAlive() {
    const timer = emptyContext.run(() => setInterval(() => {}, MAX_INTERVAL_MS));
    return () => clearInterval(timer);
  },
  token() {
    nextToken ??= tokenMaker(makeProcessPrefix());
    return nextToken();
  },
};

const systemEnvironment: Environment = { ...systemClock, ...systemParts };

/** Environments whose callbacks are known to run in the empty context. */
const emptyContextEnvironments = new WeakSet<object>([systemEnvironment]);

/**
 * The given clock or environment, with what it lacks taken from the platform. Its callbacks run in the empty
 * asynchronous context, wherever they come from.
 */
export function environmentOf(source: Clock | Environment = systemClock): Environment {
  if (source === systemClock) return systemEnvironment;
  if ("token" in source && emptyContextEnvironments.has(source)) return source;
  const parts = "token" in source ? source : systemParts;
  const environment: Environment = {
    now: () => source.now(),
    monotonic: () => source.monotonic(),
    after: (ms, callback) => emptyContext.run(() => source.after(ms, () => emptyContext.run(callback))),
    nextTurn: (callback) => emptyContext.run(() => parts.nextTurn(() => emptyContext.run(callback))),
    keepAlive: () => parts.keepAlive(),
    token: () => parts.token(),
  };
  emptyContextEnvironments.add(environment);
  return environment;
}
