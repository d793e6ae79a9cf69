import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import type { Clock } from "../time/clock.ts";
import { withTimeout } from "../time/with-timeout.ts";
import { isCluster } from "./connections.ts";
import { writeOutcomeOf } from "./failure.ts";

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

/** How often each connection was lost. It is shared by all clients on a connection, which then has one listener. */
const lossesByConnection = new WeakMap<Redis | Cluster, { count: number }>();

function lossesOf(redis: Redis | Cluster): { readonly count: number } {
  const known = lossesByConnection.get(redis);
  if (known !== undefined) return known;
  const losses = { count: 0 };
  lossesByConnection.set(redis, losses);
  const countLosses = (node: Redis): void => {
    node.on("close", () => {
      losses.count++;
    });
  };
  if (!isCluster(redis)) countLosses(redis);
  else {
    for (const node of redis.nodes()) countLosses(node);
    redis.on("+node", countLosses);
  }
  return losses;
}

/**
 * Runs scripts by their hash on an ioredis connection, and sends the whole script if the server does not know it.
 *
 * After a connection was lost, ioredis sends a command again. An error that says that nothing was written then says
 * nothing about the first sending. So the error is another one, with this as its cause.
 */
export function scriptClient(redis: Redis | Cluster): ScriptClient {
  const hashes = new Map<string, string>();
  const losses = lossesOf(redis);
  return {
    async eval(script, keys, args) {
      let hash = hashes.get(script);
      if (hash === undefined) {
        hash = createHash("sha1").update(script).digest("hex");
        hashes.set(script, hash);
      }
      const lossesBefore = losses.count;
      try {
        return await redis.evalsha(hash, keys.length, ...keys, ...args).catch((error: unknown) => {
          if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
          return redis.eval(script, keys.length, ...keys, ...args);
        });
      } catch (cause) {
        if (losses.count === lossesBefore || writeOutcomeOf(cause).kind !== "not-written") throw cause;
        throw new Error("the connection was lost after the command had been sent", { cause });
      }
    },
  };
}
