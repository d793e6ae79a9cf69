/** A primary that dies while its replicas lag behind, and a Sentinel that makes one of them the next primary. */
import { expect, it } from "vitest";
import { testEvent } from "./harness/events.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { lengthOf, report } from "./harness/report.ts";
import { newSeed, pause, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, System, type Verdict, WORST_ANSWER_MS } from "./harness/system.ts";

/** For how long the primary is alone with what it is given. */
const ALONE_MS = 1_000;

function play(name: string, replicas: number): Promise<Verdict> {
  return withScope(async (scope) => {
    const primary = await RedisServer.start(scope);
    const followers = [
      await RedisServer.startReplica(scope, primary),
      await RedisServer.startReplica(scope, primary),
    ];
    const sentinel = await RedisServer.startSentinel(scope, primary.port);
    await until(
      "the Sentinel knows both replicas",
      async () => ((await sentinel.tell("SENTINEL", "REPLICAS", "payhooks")) as unknown[]).length === 2,
      { withinMs: 30_000 },
    );
    const inbox = { kind: "redis", target: { sentinel: sentinel.port }, replicas } as const;
    const system = System.create(scope, inbox, newSeed(name));
    // Slow handlers: what the primary alone has is not completed before it dies.
    const config = await system.config({ handlerMs: 3_000, concurrency: 8 });
    await ProcessUnderTest.start(scope, config);
    const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
    let over = false;
    const sending = sender.run(() => testEvent(keys.privateKey), { isOver: () => over, perSecond: 30 });
    scope.add(null, () => {
      over = true;
      return sending;
    });
    const acknowledges = async (more: number, withinMs = 30_000): Promise<void> => {
      const enough = sender.acknowledged.size + more;
      await until("it acknowledges", () => sender.acknowledged.size >= enough, { withinMs });
    };
    await acknowledges(30);
    for (const one of followers) one.freeze();
    await primary.tell("CLIENT", "KILL", "TYPE", "replica");
    await pause(ALONE_MS);
    await primary.kill();
    for (const one of followers) one.thaw();
    await until(
      "the Sentinel names another primary",
      async () => {
        const address = (await sentinel.tell("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "payhooks")) as string[];
        return Number(address[1]) !== primary.port;
      },
      { withinMs: 30_000 },
    );
    await acknowledges(30);
    over = true;
    await sending;
    const verdict = await system.judge(sender);
    report(name, verdict, sender, replicas === 0 ? "must be caught" : "");
    expect(system.longestMs(sender.answered, sender)).toBeLessThanOrEqual(WORST_ANSWER_MS);
    return verdict;
  });
}

const times = lengthOf(1, 5);

it("loses nothing with replicas: 1, and without it shows what is lost", {
  timeout: times * 120_000,
}, async () => {
  for (let time = 0; time < times; time++) {
    const [waits, doesNot] = await Promise.all([
      play("Sentinel failover, replicas: 1", 1),
      play("control: Sentinel failover, replicas: 0", 0),
    ]);
    expect(waits).toMatchObject({ lost: [], unreported: [] });
    expect(waits.acknowledged).toBeGreaterThanOrEqual(60);
    expect(doesNot.lost.length).toBeGreaterThan(0);
  }
});
