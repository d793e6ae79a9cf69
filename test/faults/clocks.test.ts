/** A machine's clock was an hour ahead, and is corrected: SQLite has no other clock. */
import { createInbox } from "@payhooks/core/inbox";
import { sqliteStore } from "@payhooks/core/sqlite";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../packages/core/src/time/clock.ts";
import { environmentOf } from "../../packages/core/src/time/environment.ts";
import { testEvent } from "./harness/events.ts";
import { openHandle } from "./harness/inbox.ts";
import { ProcessUnderTest } from "./harness/processes.ts";
import { deliver, newFolder, sqliteIn, startReceiver } from "./harness/receivers.ts";
import { report } from "./harness/report.ts";
import { newSeed, pause, until, withScope } from "./harness/scope.ts";
import { Sender } from "./harness/sender.ts";
import { keys, LEASE_MS, SOUND, System } from "./harness/system.ts";

const HOUR_MS = 3_600_000;

describe("a clock that was an hour ahead and is corrected", { timeout: 60_000 }, () => {
  it("keeps no event waiting: no waiting one, no retry, and none of the dead process", () =>
    withScope(async (scope) => {
      const system = System.create(scope, sqliteIn(newFolder(scope)), newSeed("a clock is corrected"));
      const config = await system.config({ concurrency: 8 });
      const ahead = await ProcessUnderTest.start(scope, config, { shiftMs: HOUR_MS });
      const sender = scope.add(new Sender({ ports: [config.port] }), (one) => one.close());
      const manners = ["throws", "slow", "long", "calm"] as const;
      await sender.sendAll(
        Array.from({ length: 40 }, (_, n) =>
          testEvent(keys.privateKey, { manner: manners[n % 4] ?? "calm" }),
        ),
      );
      expect(sender.acknowledged.size).toBe(40);
      await ahead.kill();
      expect(system.lines("completed").length).toBeLessThan(30);
      await ProcessUnderTest.start(scope, config);
      const verdict = await system.judge(sender);
      report("SQLite: a clock was an hour ahead and is corrected", verdict, sender);
      expect(verdict).toMatchObject({ ...SOUND, completed: 40, held: 0 });
    }));

  it("takes no lease from a process that renews it, and tries a handler again after its delay", () =>
    withScope(async (scope) => {
      const { file, driver } = sqliteIn(newFolder(scope));
      let aheadMs = HOUR_MS;
      const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
      const environment = environmentOf(clock);
      const inbox = () => {
        const store = sqliteStore(openHandle({ file, driver }), { clock: environment });
        return createInbox(store, { leaseMs: LEASE_MS, pollMs: 50, clock: environment });
      };
      const ran: string[] = [];
      let release = (): void => {};
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const starting = Array.from({ length: 2 }, () =>
        startReceiver(scope, inbox(), (receiver) => {
          receiver.onDeposit(
            async ({ referenceId }, { attempt }) => {
              ran.push(`${referenceId.split("-")[0]} ${attempt}`);
              if (referenceId.startsWith("slow")) await released;
              if (referenceId.startsWith("throws") && attempt === 1)
                throw new Error("the first attempt fails");
            },
            { backoffMs: () => 2_000 },
          );
        }),
      );
      const processes = await Promise.all(starting);
      const [one] = processes;
      if (one === undefined) throw new Error("there is no process");
      for (const manner of ["slow", "throws"] as const) {
        expect(await deliver(one.receiver, testEvent(keys.privateKey, { manner }))).toBe(200);
      }
      await until("one runs, and one has failed", () => one.notices.some(({ type }) => type === "retry"));
      aheadMs = 0;
      const corrected = performance.now();
      await until("it is tried again", () => ran.includes("throws 2"), { withinMs: 8_000 });
      expect(performance.now() - corrected).toBeGreaterThan(1_500);
      // As long as several leases, in which the other process looks for what is due.
      await pause(2 * LEASE_MS);
      release();
      await until("all is done", async () => {
        const { waiting, retrying, running } = await one.receiver.health();
        return waiting === 0 && retrying === 0 && running === 0;
      });
      expect(ran.toSorted()).toEqual(["slow 1", "throws 1", "throws 2"]);
      const notices = processes.flatMap((process) => process.notices);
      expect(notices.filter(({ type }) => type === "double-risk")).toEqual([]);
    }));
});
