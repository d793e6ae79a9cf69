/** A Redis that refuses, and a network that is slow or breaks: an answer in time, always, and nothing lost. */
import { describe, expect, it } from "vitest";
import {
  expectSound,
  FAULT_MS,
  type Fault,
  type Played,
  playFault,
  refused,
} from "./harness/fault-under-load.ts";
import { NetworkProxy } from "./harness/proxy.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { withScope } from "./harness/scope.ts";
import { BACK_WITHIN_MS } from "./harness/system.ts";

/** A lease that outlasts the fault: nothing is taken for another process's. */
const LASTING_MS = 2 * FAULT_MS;

/** The server, and the proxy by which the process reaches it. */
interface RedisBehindProxy {
  readonly redis: RedisServer;
  readonly proxy: NetworkProxy;
}

function play(
  name: string,
  fault: Fault<RedisBehindProxy>,
  options: { readonly leaseMs?: number; readonly faultMs?: number } = {},
): Promise<Played> {
  return withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const proxy = await NetworkProxy.start(scope, redis.port);
    return playFault(scope, name, { kind: "redis", target: proxy.url }, { redis, proxy }, fault, options);
  });
}

describe("a Redis that refuses", () => {
  it("loses nothing if it is full, read-only, has forgotten the scripts, or denies them", {
    timeout: 120_000,
  }, async () => {
    const [full, readOnly, noScript, denied] = await Promise.all([
      play("Redis full", {
        begin: ({ redis }) => redis.tell("CONFIG", "SET", "maxmemory", "1mb"),
        end: ({ redis }) => redis.tell("CONFIG", "SET", "maxmemory", "0"),
      }),
      play("READONLY", {
        // Of a primary that nobody answers for: it keeps its data, and takes no writes.
        begin: ({ redis }) => redis.tell("REPLICAOF", "127.0.0.1", 1),
        end: ({ redis }) => redis.tell("REPLICAOF", "NO", "ONE"),
      }),
      play("NOSCRIPT", {
        begin: ({ redis }) => redis.tell("SCRIPT", "FLUSH"),
        end: ({ redis }) => redis.tell("SCRIPT", "FLUSH"),
      }),
      play("denied by ACL", {
        begin: ({ redis }) => redis.tell("ACL", "SETUSER", "default", "-set", "-evalsha", "-eval"),
        end: ({ redis }) => redis.tell("ACL", "SETUSER", "default", "+@all"),
      }),
    ]);
    for (const played of [full, readOnly, noScript, denied]) {
      expectSound(played);
      expect(played.backAfterMs).toBeLessThanOrEqual(BACK_WITHIN_MS);
    }
    for (const played of [full, readOnly, denied]) expect(refused(played)).toBeGreaterThan(0);
    expect(noScript.refusedInQuiet).toEqual([]);
  });
});

describe("a network", () => {
  it("is bridged if it is slow: 200 at 50 and 200 ms, an answer in time at 1,000 ms, 503 at 3,000 ms", {
    timeout: 120_000,
  }, async () => {
    const slow = (ms: number): Fault<RedisBehindProxy> => ({
      begin: ({ proxy }) => {
        proxy.latencyMs = ms;
      },
      end: ({ proxy }) => {
        proxy.latencyMs = 0;
      },
    });
    const [at50, at200, at1000, at3000] = await Promise.all([
      play("latency 50 ms", slow(50), { leaseMs: LASTING_MS }),
      play("latency 200 ms", slow(200), { leaseMs: LASTING_MS }),
      play("latency 1,000 ms", slow(1_000), { leaseMs: LASTING_MS }),
      play("latency 3,000 ms", slow(3_000), { leaseMs: LASTING_MS }),
    ]);
    for (const played of [at50, at200, at1000, at3000]) expectSound(played);
    for (const { during, refusedInQuiet, risks } of [at50, at200]) {
      expect(risks).toBe(0);
      expect(during.length).toBeGreaterThan(30);
      expect(refusedInQuiet.length / during.length).toBeLessThanOrEqual(0.01);
    }
    expect(refused(at3000)).toBeGreaterThan(0);
  });

  it("causes no loss if it resets connections, refuses them, or goes silent", {
    timeout: 120_000,
  }, async () => {
    let resets: NodeJS.Timeout | undefined;
    const [reset, gone, halfOpen] = await Promise.all([
      play(
        "connections reset five times a second",
        {
          begin: ({ proxy }) => {
            resets = setInterval(() => proxy.reset(), 200);
          },
          end: () => clearInterval(resets),
        },
        { leaseMs: LASTING_MS },
      ).finally(() => clearInterval(resets)),
      play("connections refused", {
        begin: ({ proxy }) => proxy.refuse(true),
        end: ({ proxy }) => proxy.refuse(false),
      }),
      play("half-open connections", { begin: ({ proxy }) => proxy.halfOpen(), end: () => {} }),
    ]);
    for (const played of [reset, gone, halfOpen]) expectSound(played);
    expect(reset.risks).toBe(0);
    // A connection that went silent is replaced before a delivery has waited too long.
    expect(refused(gone)).toBeGreaterThan(0);
  });
});
