/** Handlers that kill or hang their process, wrong clocks, and restarts. */
import { describe, expect, it } from "vitest";
import { testEvent } from "./harness/events.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { DURABLE } from "./harness/receivers.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { lengthOf, report } from "./harness/report.ts";
import { newSeed, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, LONG_LEASE_MS, System } from "./harness/system.ts";

describe.concurrent("handlers", () => {
  it.each(DURABLE)(
    "on %s an event that kills its process is held as crashed after its attempts, and all that ran beside it are done",
    {
      timeout: 120_000,
    },
    (_, makeInbox) =>
      withScope(async (scope) => {
        const system = System.create(scope, await makeInbox(scope), newSeed("poison"));
        const config = await system.config({ maxAttempts: 3, concurrency: 16, handlerMs: 300 });
        const sender = scope.add(new Sender({ ports: [config.port], lanes: 16 }), (one) => one.close());
        const poison = testEvent(keys.privateKey, { manner: "poison" });
        const others = Array.from({ length: 60 }, () => testEvent(keys.privateKey));
        const events = [...others.slice(0, 30), poison, ...others.slice(30)];
        const sending = sender.sendAll(events);
        let deaths = 0;
        let one = await ProcessUnderTest.start(scope, config);
        await until(
          "it is held",
          async () => {
            if (one.exit !== null) {
              deaths++;
              one = await ProcessUnderTest.start(scope, config);
            }
            return (await system.held()).has(poison.key);
          },
          { withinMs: 60_000, everyMs: 50 },
        );
        await sending;
        // Some ran beside it when the process died, and all of them at least once more.
        const interrupted = system.lines("notice").filter(({ more }) => more === "died-while-running");
        expect(new Set(interrupted.map(({ key }) => key)).size).toBeGreaterThanOrEqual(4);
        const verdict = await system.judge(sender);
        report("an event that kills its process", verdict, sender, `${deaths} deaths`);
        expect(verdict).toMatchObject({ acknowledged: 61, completed: 60, held: 1, lost: [] });
        expect(verdict.silentDoubles).toEqual([]);
        expect(deaths).toBe(3);
        expect(system.lines("started").filter(({ key }) => key === poison.key)).toHaveLength(3);
        const notices = system.lines("notice").filter(({ key }) => key === poison.key);
        expect(notices).toContainEqual(expect.objectContaining({ detail: "held", more: "crashed" }));
        await until("the onHeld handlers are told", () =>
          system.lines("on-held").some(({ key, detail }) => key === poison.key && detail === "crashed"),
        );
      }),
  );

  it(
    "one that hangs ends at its timeout, is not called beside itself, and is held after its attempts",
    { timeout: 60_000 },
    () =>
      withScope(async (scope) => {
        const redis = await RedisServer.start(scope);
        const system = System.create(scope, { kind: "redis", target: redis.url }, newSeed("hung handler"));
        const config = await system.config({
          maxAttempts: 2,
          timeoutMs: 400,
          concurrency: 2,
          leaseMs: LONG_LEASE_MS,
        });
        await ProcessUnderTest.start(scope, config);
        const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
        const hung = Array.from({ length: 4 }, () => testEvent(keys.privateKey, { manner: "hangs" }));
        const others = Array.from({ length: 20 }, () => testEvent(keys.privateKey));
        await sender.sendAll([...hung, ...others]);
        const verdict = await system.judge(sender);
        report("handlers that hang", verdict, sender);
        expect(verdict).toMatchObject({ completed: 20, held: 4, lost: [], doubles: [] });
        for (const { key } of hung) {
          expect(system.lines("started").filter((line) => line.key === key)).toHaveLength(1);
          expect(system.lines("notice")).toContainEqual(
            expect.objectContaining({ key, detail: "given-up", more: "exhausted" }),
          );
        }
      }),
  );
});

describe.concurrent("clocks", () => {
  it("processes whose clocks are off by ±1 h and ±23 h lose and repeat nothing", { timeout: 120_000 }, () =>
    withScope(async (scope) => {
      const seed = newSeed("wrong clocks");
      const redis = await RedisServer.start(scope);
      const system = System.create(scope, { kind: "redis", target: redis.url }, seed);
      const ports: number[] = [];
      for (const hours of [-23, -1, 1, 23]) {
        const config = await system.config({ throwRate: 0.05, handlerMs: 100, leaseMs: LONG_LEASE_MS });
        ports.push(config.port);
        await ProcessUnderTest.start(scope, config, { shiftMs: hours * 3_600_000 });
      }
      const sender = scope.add(new Sender({ ports }), (one) => one.close());
      const events = Array.from({ length: 400 }, () => testEvent(keys.privateKey));
      // Copies reach processes that believe in other days.
      await sender.sendAll([...events, ...events]);
      const verdict = await system.judge(sender);
      report("clocks off by ±1 h and ±23 h", verdict, sender);
      expect(sender.answers.get(200)).toBe(800);
      expect(verdict).toMatchObject({ acknowledged: 400, completed: 400, lost: [], doubles: [] });
      expect(new Set(system.lines("completed").map(({ pid }) => pid)).size).toBe(4);
    }),
  );
});

describe.concurrent("restarts", () => {
  const restarts = lengthOf(4, 20);
  it(
    `${restarts} rolling restarts of two processes by SIGTERM lose and repeat nothing`,
    {
      timeout: 60_000 + restarts * 10_000,
    },
    () =>
      withScope(async (scope) => {
        const seed = newSeed("rolling restarts");
        const redis = await RedisServer.start(scope);
        const system = System.create(scope, { kind: "redis", target: redis.url }, seed);
        const configs = [
          await system.config({ handlerMs: 200, throwRate: 0.02, leaseMs: LONG_LEASE_MS }),
          await system.config({ handlerMs: 200, throwRate: 0.02, leaseMs: LONG_LEASE_MS }),
        ];
        const processes = await Promise.all(configs.map((config) => ProcessUnderTest.start(scope, config)));
        const sender = new Sender({ ports: configs.map(({ port }) => port) });
        scope.add(sender, (one) => one.close());
        let over = false;
        const sending = sender.run(() => testEvent(keys.privateKey), { isOver: () => over, perSecond: 80 });
        scope.add(null, () => {
          over = true;
          return sending;
        });
        for (let restart = 0; restart < restarts; restart++) {
          const turn = restart % 2;
          const [config, old] = [configs[turn], processes[turn]];
          if (config === undefined || old === undefined) throw new Error("there are two processes");
          const enough = sender.acknowledged.size + 30;
          await until("more is acknowledged", () => sender.acknowledged.size >= enough);
          expect(await old.terminate()).toMatchObject({ code: 0 });
          processes[turn] = await ProcessUnderTest.start(scope, config);
        }
        over = true;
        await sending;
        const verdict = await system.judge(sender);
        report(`rolling restart × ${restarts}`, verdict, sender);
        expect(verdict.acknowledged).toBeGreaterThanOrEqual(30 * restarts);
        expect(verdict).toMatchObject({ lost: [], doubles: [] });
        expect(system.lines("notice").filter(({ detail }) => detail === "double-risk")).toEqual([]);
      }),
  );
});
