import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import { isCluster } from "./connections.ts";

/** All that the record store asks of a Redis client: a REST client fits as well as a socket. */
export interface ScriptClient {
  /**
   * True where a script may touch several keys, as on one primary: what one turn writes is then sent together. Left out,
   * as for a cluster, every script touches one key.
   */
  readonly manyKeys?: boolean | undefined;
  /** Runs a Lua script. */
  eval(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
}

/** Runs scripts by their hash on an ioredis connection, and sends them whole when the server has forgotten them. */
export function scriptClient(redis: Redis | Cluster): ScriptClient {
  const hashes = new Map<string, string>();
  return {
    manyKeys: !isCluster(redis),
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
