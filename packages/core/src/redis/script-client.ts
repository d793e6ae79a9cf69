import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import type { Clock } from "../time/clock.ts";
import { withTimeout } from "../time/with-timeout.ts";

/** All that the store needs of a Redis client. A client over HTTP fits as well as one with a socket. */
export interface ScriptClient {
  /** Runs a Lua script (`EVAL`). Rejects with the server's error, whose message begins with its code. */
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
}

/** Wraps a client, so that it gives up a script without an answer in time. Its writes may have been made, or may still be. */
export function limitedClient(client: ScriptClient, clock: Clock, timeoutMs: number): ScriptClient {
  return {
    eval: (script, keys, args) =>
      withTimeout(
        clock,
        timeoutMs,
        () => client.eval(script, keys, args),
        () => new Error(`no answer within ${timeoutMs} ms`),
      ),
  };
}

/** Runs scripts by their hash on an ioredis connection, and sends the whole script if the server does not know it. */
export function scriptClient(redis: Redis | Cluster): ScriptClient {
  const hashes = new Map<string, string>();
  return {
    async eval(script, keys, args) {
      let hash = hashes.get(script);
      if (hash === undefined) {
        hash = createHash("sha1").update(script).digest("hex");
        hashes.set(script, hash);
      }
      try {
        return await redis.evalsha(hash, keys.length, ...keys, ...args);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
        return redis.eval(script, keys.length, ...keys, ...args);
      }
    },
  };
}
