import { type Clock, systemClock } from "./clock.ts";

/**
 * Everything that an inbox and its store take from outside: time, timers, turns of the event loop and randomness. A simulator
 * passes its own, and so controls all of it.
 */
export interface Environment extends Clock {
  /** Calls back once, after what is running now and before any timer. */
  soon(callback: () => void): void;
  /** Keeps the process alive until the returned function is called. */
  hold(): () => void;
  /** Makes a text that no other call in any process gets: 12 to 16 letters, digits, `-` and `_`. */
  token(): string;
}

const PROCESS_BYTES = 7;

/** Tokens of one process: a random beginning of its own, and a count. */
export function tokens(beginning: string): () => string {
  let count = 0;
  return () => beginning + (count++).toString(36).padStart(3, "0");
}

function ofThisProcess(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(PROCESS_BYTES))).toString("base64url");
}

/** Made at the first token, since Workers refuse randomness while a module is loaded. */
let nextToken: (() => string) | null = null;

const FOREVER_MS = 2_147_483_647;

const systemParts: Pick<Environment, "soon" | "hold" | "token"> = {
  soon: (callback) => void setImmediate(callback),
  hold() {
    const timer = setInterval(() => {}, FOREVER_MS);
    return () => clearInterval(timer);
  },
  token() {
    nextToken ??= tokens(ofThisProcess());
    return nextToken();
  },
};

/** The given clock, with everything else that an environment has taken from the platform. An environment is returned as it is. */
export function environmentOf(clock: Clock | Environment = systemClock): Environment {
  if ("token" in clock) return clock;
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
    ...systemParts,
  };
}
