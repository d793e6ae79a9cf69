/** Redis itself dies, freezes, or stays away. */
import { describe, expect, it } from "vitest";
import { testEvent } from "./harness/events.ts";
import type { Span } from "./harness/lag.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { RedisServer, type RedisSettings } from "./harness/redis-server.ts";
import { isLong, report } from "./harness/report.ts";
import { newSeed, pause, sharedNow, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { BACK_WITHIN_MS, keys, SOUND, System, type Verdict, WORST_ANSWER_MS } from "./harness/system.ts";

interface Outage {
  readonly verdict: Verdict;
  readonly sender: Sender;
  /** On a machine that has nothing else to do. */
  readonly worstAnswerMs: number;
  /** From Redis's return to the first event that is completed, on such a machine. */
  readonly backAfterMs: number;
}

/** Load, the fault, and load again until it is plain that all is well. `fault` resolves when Redis is back. */
function play(
  name: string,
  aof: NonNullable<RedisSettings["aof"]>,
  fault: (redis: RedisServer) => Promise<void>,
  times = 1,
): Promise<Outage> {
  return withScope(async (scope) => {
    const redis = await RedisServer.start(scope, { aof });
    const system = System.create(scope, { kind: "redis", target: redis.url }, newSeed(name));
    const config = await system.config({ handlerMs: 100 });
    await ProcessUnderTest.start(scope, config);
    const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
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
    const returns: Span[] = [];
    for (let time = 0; time < times; time++) {
      await acknowledges(60);
      await fault(redis);
      returns.push(await system.firstCompletionAfter(sharedNow(), 15_000));
    }
    await acknowledges(30);
    over = true;
    await sending;
    const verdict = await system.judge(sender);
    const backAfterMs = system.longestMs(returns, sender);
    report(name, verdict, sender, `consuming again ${backAfterMs} ms after the return`);
    return { verdict, sender, worstAnswerMs: system.longestMs(sender.answered, sender), backAfterMs };
  });
}

/**
 * While a sync of the disk is under way, Redis keeps what it has acknowledged in its own memory (docs/concepts/durability.md): a
 * kill then shows its promise, not ours.
 */
async function killAndRestart(redis: RedisServer, downMs: number): Promise<void> {
  const isIdle = async (): Promise<boolean> => Number(await redis.info("aof_pending_bio_fsync")) === 0;
  await until("no sync of the disk is under way", isIdle, { everyMs: 1 });
  await redis.kill();
  await pause(downMs);
  await redis.up();
}

describe.concurrent("Redis", () => {
  const times = isLong ? 5 : 1;
  it("is killed and restarted, frozen for 5 s, away for 12 s: every answer in time, nothing lost", {
    timeout: 120_000 + times * 60_000,
  }, async () => {
    const outages = await Promise.all([
      play("Redis kill -9, AOF everysec", "everysec", (redis) => killAndRestart(redis, 500), times),
      play("Redis kill -9, AOF always", "always", (redis) => killAndRestart(redis, 500), times),
      play("Redis frozen for 5 s", "everysec", async (redis) => {
        redis.freeze();
        await pause(5_000);
        redis.thaw();
      }),
      play("Redis away for 12 s", "everysec", (redis) => killAndRestart(redis, 12_000)),
    ]);
    for (const { verdict, sender, worstAnswerMs, backAfterMs } of outages) {
      expect(verdict).toMatchObject(SOUND);
      expect(verdict.acknowledged).toBeGreaterThanOrEqual(90);
      expect(worstAnswerMs).toBeLessThanOrEqual(WORST_ANSWER_MS);
      expect(sender.unanswered).toBe(0);
      expect([...sender.answers.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
      expect(backAfterMs).toBeLessThanOrEqual(BACK_WITHIN_MS);
    }
    // A shorter outage than a delivery may take is bridged: its write is repeated.
    const [, , frozen, away] = outages;
    for (const { sender } of [frozen, away]) {
      expect(sender.answers.get(503) ?? 0, "answers while Redis was down").toBeGreaterThan(0);
    }
  });

  it("control: without an append-only file it loses acknowledged events", {
    timeout: 60_000,
  }, async () => {
    // Its handlers are slow, so that at the kill there is something to lose.
    const { verdict } = await withScope(async (scope) => {
      const redis = await RedisServer.start(scope, { aof: "none" });
      const system = System.create(scope, { kind: "redis", target: redis.url }, newSeed("no AOF"));
      const config = await system.config({ handlerMs: 5_000, concurrency: 2 });
      await ProcessUnderTest.start(scope, config);
      const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
      await sender.sendAll(Array.from({ length: 30 }, () => testEvent(keys.privateKey)));
      await killAndRestart(redis, 100);
      const lost = await system.judge(sender);
      report("control: Redis kill -9 without AOF", lost, sender, "must be caught");
      return { verdict: lost };
    });
    expect(verdict.lost.length).toBeGreaterThan(0);
  });
});
