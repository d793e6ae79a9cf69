/** Events during which their process has died run in groups that get smaller. */
import { type FakeClock, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import type { Inbox, Runner } from "../../src/inbox/contract/inbox.ts";
import type { RecordStore } from "../../src/inbox/contract/store.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { CrashSuspects, groupSizeOf } from "../../src/inbox/run/crash-suspects.ts";
import { memoryStore } from "../../src/memory/store.ts";
import { sleep } from "../../src/time/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";
import { verifiedEvent } from "../verified-event.ts";

describe("events that may have killed their process", () => {
  it("run in groups as large as each of them allows, in the order in which they came", async () => {
    const suspects = new CrashSuspects();
    const went: string[] = [];
    const wait = async (key: string, groupSize: number): Promise<void> => {
      went.push((await suspects.wait(key, groupSize)) ? key : `not ${key}`);
    };
    const waiting = [wait("a", 2), wait("b", 4), wait("c", 4), wait("alone", 1), wait("d", 4)];
    // It waits already.
    await wait("c", 4);
    expect(went).toEqual(["a", "b", "not c"]);
    expect(suspects.tryJoin("a", 2)).toBe(true);
    // Others wait, and are first.
    expect(suspects.tryJoin("e", 4)).toBe(false);
    suspects.leave("unknown");
    suspects.leave("a");
    await waiting[2];
    expect(went).toEqual(["a", "b", "not c", "c"]);
    suspects.leave("b");
    expect(went).toHaveLength(4);
    suspects.leave("c");
    await waiting[3];
    expect(went.at(-1)).toBe("alone");
    suspects.leave("alone");
    await waiting[4];
    expect(went.at(-1)).toBe("d");
  });

  it("wait in the process if they are a hundred at most", async () => {
    const suspects = new CrashSuspects();
    expect(suspects.tryJoin("first", 1)).toBe(true);
    for (let n = 0; n < 100; n++) void suspects.wait(`event ${n}`, 1);
    expect(await suspects.wait("one more", 1)).toBe(false);
  });

  it("run in groups that get smaller with each death, and alone with a single attempt left", () => {
    const groupSize = (attempts: number, maxAttempts?: number): number =>
      groupSizeOf(
        [{ flow: "payments", event: "DEPOSIT", handler: "credit", attempts }],
        maxAttempts === undefined ? {} : { maxAttempts: () => maxAttempts },
      );
    expect([2, 3, 4, 5, 9].map((attempts) => groupSize(attempts, 25))).toEqual([8, 4, 2, 1, 1]);
    expect([33, 34, 35, 66].map((attempts) => groupSize(attempts, 1_000))).toEqual([1, 1, 1, 1]);
    expect([groupSize(2, 3), groupSize(2, 4), groupSize(3, 4)]).toEqual([1, 8, 1]);
    // A process without the handler does not know how many attempts are left.
    expect([groupSize(2, 0), groupSize(2)]).toEqual([1, 1]);
  });
});

const LEASE_MS = 10_000;
const EVENTS = 24;

describe("an inbox whose process has died twice with the same events", () => {
  /** Accepts events, and lets two processes die while they run all of them. */
  async function afterTwoDeaths(clock: FakeClock): Promise<Inbox> {
    const store: RecordStore = { ...memoryStore({ clock }), endsWithProcess: false };
    const start = (): Inbox => createInbox(store, { leaseMs: LEASE_MS, clock: environmentOf(clock) });
    const accepting = start();
    for (let n = 0; n < EVENTS; n++) await accepting.accept(verifiedEvent(n, { signedAt: clock.now() }));
    for (let death = 0; death < 2; death++) {
      const dying = start();
      let called = 0;
      await dying.run(
        runnerOf(25, () => {
          called++;
          return new Promise(() => {});
        }),
        { concurrency: EVENTS },
      );
      await clock.advance(1_000);
      expect(called).toBe(EVENTS);
      const closing = dying.close({ graceMs: 0 });
      await clock.advance(LEASE_MS);
      await closing;
    }
    return start();
  }

  function runnerOf(maxAttempts: number, call: () => Promise<unknown>): Runner {
    return {
      async run(run) {
        run.noteCall();
        await call();
        const attempt = (run.input.handlerStates.credit?.attempts ?? 0) + 1;
        return {
          outcome: { kind: "done" },
          changes: [{ name: "credit", kind: "done", attempt }],
          onWritten() {},
        };
      },
      firstHandler: () => "credit",
      handlersOf: () => ["credit"],
      maxAttempts: () => maxAttempts,
      notify() {},
    };
  }

  it.each([
    [25, 8],
    [3, 1],
  ])("runs events of %i attempts %i at a time", async (maxAttempts, together) => {
    const clock = fakeClock();
    const inbox = await afterTwoDeaths(clock);
    let running = 0;
    let most = 0;
    let done = 0;
    const runner = runnerOf(maxAttempts, async () => {
      most = Math.max(most, ++running);
      await sleep(clock, 100);
      running--;
      done++;
    });
    await inbox.run(runner, { concurrency: EVENTS });
    await clock.advance((EVENTS / together) * 100 + 2_000);
    expect([done, most]).toEqual([EVENTS, together]);
    const closing = inbox.close({ graceMs: 0 });
    await clock.advance(1);
    await closing;
  });
});
