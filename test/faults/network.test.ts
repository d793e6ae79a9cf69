/** A Redis that refuses, and a network that is slow or breaks: an answer in time, always, and nothing lost. */
import { describe, expect, it } from "vitest";
import { testEvent } from "./harness/events.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { NetworkProxy } from "./harness/proxy.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { isLong, report } from "./harness/report.ts";
import { newSeed, pause, sharedNow, until, withScope } from "./harness/scope.ts";
import { type Answer, Sender } from "./harness/sender.ts";
import { BACK_WITHIN_MS, keys, SOUND, System, type Verdict, WORST_ANSWER_MS } from "./harness/system.ts";

/** Longer than a delivery waits for a store that does not take its write: what is shorter, nobody hears of. */
const FAULT_MS = isLong ? 10_000 : 4_000;

/** A lease that outlasts the fault: nothing is taken for another process's. */
const LASTING_MS = 2 * FAULT_MS;

interface Played {
  readonly verdict: Verdict;
  readonly sender: Sender;
  /** On a machine that has nothing else to do. */
  readonly worstAnswerMs: number;
  /** From the fault's end until all that had been acknowledged was completed, on such a machine. */
  readonly backAfterMs: number;
  /** `double-risk` notices: a process that lives on has every lease, and knows every write of its own. */
  readonly risks: number;
  /** Answers while the fault was on. */
  readonly during: readonly Answer[];
  /** Of these, what was refused, and not because the machine is slow. */
  readonly refusedInQuiet: readonly Answer[];
}

/** Load before, during and after a fault. */
function play(
  name: string,
  { begin, end }: Fault,
  { leaseMs = 1_000, faultMs = FAULT_MS }: { readonly leaseMs?: number; readonly faultMs?: number } = {},
): Promise<Played> {
  return withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const proxy = await NetworkProxy.start(scope, redis.port);
    const inbox = { kind: "redis", target: proxy.url } as const;
    const system = System.create(scope, inbox, newSeed(name));
    const config = await system.config({ handlerMs: 50, leaseMs });
    await ProcessUnderTest.start(scope, config);
    const sender = scope.add(new Sender({ ports: [config.port], lanes: 48 }), (one) => one.close());
    let over = false;
    const sending = sender.run(() => testEvent(keys.privateKey), { isOver: () => over, perSecond: 50 });
    scope.add(null, () => {
      over = true;
      return sending;
    });
    const acknowledges = async (more: number): Promise<void> => {
      const enough = sender.acknowledged.size + more;
      await until("it acknowledges", () => sender.acknowledged.size >= enough);
    };
    await acknowledges(30);
    const before = sender.answered.length;
    await begin({ redis, proxy });
    await pause(faultMs);
    const during = sender.answered.slice(before);
    await end({ redis, proxy });
    const endedAt = sharedNow();
    await acknowledges(30);
    over = true;
    await sending;
    const verdict = await system.judge(sender, { leaseMs });
    const backAfterMs = system.longestMs(system.waitsSince(endedAt, sender), sender);
    report(
      name,
      verdict,
      sender,
      `during it: ${count(during, 200)} × 200, ${count(during, 503)} × 503; all back after ${backAfterMs} ms`,
    );
    const worstAnswerMs = system.longestMs(sender.answered, sender);
    const refusedInQuiet = system.inQuiet(during, sender).filter(({ status }) => status === 503);
    const risks = system.lines("notice").filter(({ detail }) => detail === "double-risk").length;
    return { verdict, sender, worstAnswerMs, risks, backAfterMs, during, refusedInQuiet };
  });
}

interface Ground {
  readonly redis: RedisServer;
  readonly proxy: NetworkProxy;
}

interface Fault {
  begin(ground: Ground): Promise<unknown> | unknown;
  end(ground: Ground): Promise<unknown> | unknown;
}

function expectSound({ verdict, sender, worstAnswerMs }: Played): void {
  expect(verdict).toMatchObject(SOUND);
  expect(verdict.acknowledged).toBeGreaterThanOrEqual(60);
  expect(worstAnswerMs).toBeLessThanOrEqual(WORST_ANSWER_MS);
  expect(sender.unanswered).toBe(0);
  expect([...sender.answers.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
}

function count(answers: readonly Answer[], status: number): number {
  return answers.filter((answer) => answer.status === status).length;
}

const refused = ({ during }: Played): number => count(during, 503);

describe("a Redis that refuses", () => {
  it("because it is full, read-only, has forgotten the scripts, or denies them", {
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
  it("that is slow: 200 at 50 and 200 ms, an answer in time at 1,000 ms, 503 at 3,000 ms", {
    timeout: 120_000,
  }, async () => {
    const slow = (ms: number): Fault => ({
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

  it("that resets connections, refuses them, or goes silent", { timeout: 120_000 }, async () => {
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
