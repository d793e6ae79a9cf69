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

/** Tokens of one process: a random beginning of its own, and a count. */
export function tokens(beginning: string): () => string {
  let count = 0;
  return () => beginning + (count++).toString(36).padStart(3, "0");
}

function ofThisProcess(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(PROCESS_BYTES))).toString("base64url");
}

/** Made at the first token, because Workers refuse randomness while a module is loaded. */
let nextToken: (() => string) | null = null;

const FOREVER_MS = 2_147_483_647;

const systemParts: Pick<Environment, "nextTurn" | "keepAlive" | "token"> = {
  nextTurn: (callback) => void emptyContext.run(() => setImmediate(callback)),
  keepAlive() {
    const timer = emptyContext.run(() => setInterval(() => {}, FOREVER_MS));
    return () => clearInterval(timer);
  },
  token() {
    nextToken ??= tokens(ofThisProcess());
    return nextToken();
  },
};

const systemEnvironment: Environment = { ...systemClock, ...systemParts };

/** Environments whose callbacks are known to run in the empty context. */
const inEmptyContext = new WeakSet<object>([systemEnvironment]);

/**
 * The given clock or environment, with what it lacks taken from the platform. Its callbacks run in the empty
 * asynchronous context, wherever they come from.
 */
export function environmentOf(given: Clock | Environment = systemClock): Environment {
  if (given === systemClock) return systemEnvironment;
  if ("token" in given && inEmptyContext.has(given)) return given;
  const parts = "token" in given ? given : systemParts;
  const environment: Environment = {
    now: () => given.now(),
    monotonic: () => given.monotonic(),
    after: (ms, callback) => emptyContext.run(() => given.after(ms, () => emptyContext.run(callback))),
    nextTurn: (callback) => emptyContext.run(() => parts.nextTurn(() => emptyContext.run(callback))),
    keepAlive: () => parts.keepAlive(),
    token: () => parts.token(),
  };
  inEmptyContext.add(environment);
  return environment;
}
