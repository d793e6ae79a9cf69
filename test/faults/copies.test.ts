/** Many copies at one time, over two processes: one run each. */

import { shuffled } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { type TestEvent, testEvent } from "./harness/events.ts";
import type { LogLine } from "./harness/log.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { RedisServer } from "./harness/redis-server.ts";
import { isLong, report } from "./harness/report.ts";
import { newSeed, type Scope, sharedNow, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, LEASE_MS, LONG_LEASE_MS, System } from "./harness/system.ts";

const COPIES = isLong ? 10_000 : 2_000;
/** Of each transaction there are five copies of two events. */
const TRANSACTIONS = COPIES / 10;

/** Two processes behind one Redis, and a sender that takes turns between them. */
async function twoProcesses(
  scope: Scope,
  seed: number,
): Promise<{ readonly system: System; readonly sender: Sender }> {
  const redis = await RedisServer.start(scope);
  const system = System.create(scope, { kind: "redis", target: redis.url }, seed);
  const configs = [
    await system.config({ leaseMs: LONG_LEASE_MS }),
    await system.config({ leaseMs: LONG_LEASE_MS }),
  ];
  await Promise.all(configs.map((config) => ProcessUnderTest.start(scope, config)));
  const sender = new Sender({ ports: configs.map(({ port }) => port), lanes: 100 });
  return { system, sender: scope.add(sender, (one) => one.close()) };
}

describe("copies", () => {
  it(`${COPIES} at one time over two processes run once`, { timeout: 180_000 }, () =>
    withScope(async (scope) => {
      const { system, sender } = await twoProcesses(scope, newSeed("copies of one event"));
      const event = testEvent(keys.privateKey);
      await sender.sendAll(
        Array.from({ length: COPIES }, () => event),
        150_000,
      );
      const verdict = await system.judge(sender);
      report(`${COPIES} copies over two processes`, verdict, sender);
      expect(sender.answers.get(200)).toBe(COPIES);
      expect(verdict).toMatchObject({ acknowledged: 1, completed: 1, lost: [], doubles: [] });
      expect(system.lines("started")).toHaveLength(1);
    }),
  );

  it(
    `${TRANSACTIONS} transactions × (PENDING, SUCCESS) × 5, shuffled: one terminal run each, no PENDING after it`,
    {
      timeout: 180_000,
    },
    () =>
      withScope(async (scope) => {
        const seed = newSeed("shuffled copies");
        const { system, sender } = await twoProcesses(scope, seed);
        const deliveries: TestEvent[] = [];
        for (let i = 0; i < TRANSACTIONS; i++) {
          const pending = testEvent(keys.privateKey, { status: "PENDING" });
          const success = testEvent(keys.privateKey, { status: "SUCCESS", payTxnId: pending.payTxnId });
          for (let copy = 0; copy < 5; copy++) deliveries.push(pending, success);
        }
        await sender.sendAll(shuffled(deliveries, seed), 150_000);
        expect(sender.answers.get(200)).toBe(COPIES);
        const terminal = new Map([...sender.acknowledged].filter(([key]) => key.endsWith("SUCCESS")));
        const verdict = await system.judge({ acknowledged: terminal });
        await until("nothing runs", async () => {
          const lines = system.lines();
          const count = (what: string): number => lines.filter((line) => line.what === what).length;
          return count("started") === count("completed");
        });
        report(`${TRANSACTIONS} × (PENDING, SUCCESS) × 5`, verdict, sender);
        expect(verdict).toMatchObject({ acknowledged: TRANSACTIONS, lost: [], doubles: [] });
        const runs = system.lines("started");
        expect(runs.filter(({ key }) => key.endsWith("SUCCESS"))).toHaveLength(TRANSACTIONS);
        const terminalAt = new Map<string, number>();
        runs.forEach(({ key }, at) => {
          const [id = "", status] = key.split(" ");
          if (status === "SUCCESS") terminalAt.set(id, at);
          else expect(terminalAt.has(id), `${id}: PENDING after SUCCESS`).toBe(false);
        });
        // Some PENDINGs came first: had none been run, this test would have looked at nothing.
        expect(runs.length).toBeGreaterThan(1.05 * TRANSACTIONS);
      }),
  );

  it.each(["frozen", "killed"] as const)(
    "the events of a %s process begin elsewhere within its lease and a second",
    {
      timeout: 60_000,
    },
    (fate) =>
      withScope(async (scope) => {
        const redis = await RedisServer.start(scope);
        const system = System.create(scope, { kind: "redis", target: redis.url }, newSeed(`${fate} process`));
        const taker = await system.config();
        const first = await ProcessUnderTest.start(scope, taker);
        // There before the events: on a busy machine, their handlers would end before a new process has started.
        const other = await ProcessUnderTest.start(scope, await system.config());
        const sender = scope.add(new Sender({ ports: [taker.port] }), (one) => one.close());
        const events = Array.from({ length: 10 }, () => testEvent(keys.privateKey, { manner: "long" }));
        await sender.sendAll(events);
        const begunBy = ({ pid }: ProcessUnderTest): number =>
          system.lines("started").filter((line) => line.pid === pid).length;
        await until("the first process has begun all of them", () => begunBy(first) === 10);
        const from = sharedNow();
        if (fate === "frozen") first.freeze();
        else await first.kill();
        const elsewhere = (): readonly LogLine[] =>
          system.lines("started").filter(({ pid }) => pid === other.pid);
        await until("all have begun elsewhere", () => elsewhere().length === 10);
        const waits = elsewhere().map(({ at }) => ({ from, to: at }));
        const verdict = await system.judge(sender);
        const waitedMs = system.longestMs(waits, sender);
        report(`${fate} process`, verdict, sender, `all begun elsewhere after ${waitedMs} ms`);
        expect(waitedMs).toBeLessThanOrEqual(LEASE_MS + 1_000);
        expect(verdict).toMatchObject({ acknowledged: 10, completed: 10, lost: [], doubles: [] });
      }),
  );

  it(
    "receiver.work() of another process runs the events that a frozen process has taken",
    { timeout: 60_000 },
    () =>
      withScope(async (scope) => {
        const redis = await RedisServer.start(scope);
        const inbox = { kind: "redis", target: redis.url } as const;
        const system = System.create(scope, inbox, newSeed("frozen process"));
        const taker = await system.config();
        const frozen = await ProcessUnderTest.start(scope, taker);
        const sender = scope.add(new Sender({ ports: [taker.port] }), (one) => one.close());
        const events = Array.from({ length: 10 }, () => testEvent(keys.privateKey, { manner: "slow" }));
        await sender.sendAll(events);
        await until("all have been taken", () => system.lines("started").length === 10);
        frozen.freeze();
        // This one takes nothing by itself: only `receiver.work()` recovers and runs, as a cron job would.
        const other = await ProcessUnderTest.start(scope, await system.config({ run: "elsewhere" }));
        let ran = 0;
        await until(
          "the other process ran all of them",
          async () => {
            ran += (await other.work()).ran;
            return ran === 10;
          },
          { withinMs: 20 * LEASE_MS, everyMs: 100 },
        );
        const verdict = await system.judge(sender);
        report("frozen process, receiver.work() elsewhere", verdict, sender);
        expect(verdict).toMatchObject({ completed: 10, lost: [], doubles: [] });
        expect(system.lines("completed").every(({ pid }) => pid === other.pid)).toBe(true);
        // Thawed, it finds that its leases are lost: what it still completes was announced as a risk.
        frozen.thaw();
        await until("the thawed process completes", () =>
          system.lines("completed").some(({ pid }) => pid === frozen.pid),
        );
        const after = await system.judge(sender);
        expect(after.doubles.length).toBeGreaterThan(0);
        expect(after.silentDoubles).toEqual([]);
      }),
  );
});
