import { createReceiver, type Notice } from "@payhooks/core";
import { createInbox, memoryStore, type RecordStore } from "@payhooks/core/inbox";
import { createTestKeys, fakeClock } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import type { Runner } from "../../src/inbox/contract/inbox.ts";
import { Crowds } from "../../src/inbox/run/crowds.ts";
import { Dispatcher } from "../../src/inbox/run/dispatcher.ts";
import { Places } from "../../src/inbox/run/places.ts";
import { StoreOperations } from "../../src/inbox/write/store-operations.ts";
import { Limiter } from "../../src/notices/limiter.ts";

function setUp() {
  const clock = fakeClock();
  const passed: string[] = [];
  const limiter = new Limiter<string>({
    clock,
    periodMs: 10_000,
    summaryCounts: true,
    pass: (error) => passed.push(`${error} 1`),
    passSummary: (error, suppressed) => passed.push(`${error} ${suppressed}`),
  });
  const add = (during: string, error = "E"): void =>
    limiter.add(`${during} ${error}`, `${during} ${error}`, 1, 1);
  return { clock, passed, limiter, add };
}

describe("equal errors", () => {
  it("are reported at once, then every ten seconds with their count, and at once again after a pause", async () => {
    const { clock, passed, add } = setUp();
    for (let second = 0; second < 25; second++) {
      add("take");
      add("take");
      await clock.advance("1s");
    }
    expect(passed).toEqual(["take E 1", "take E 19", "take E 20"]);
    await clock.advance("60s");
    expect(passed.slice(3)).toEqual(["take E 10"]);
    add("take");
    expect(passed.slice(4)).toEqual(["take E 1"]);
  });

  it("of another call, or of another kind, are reported by themselves", () => {
    const { passed, add } = setUp();
    for (let time = 0; time < 3; time++) {
      add("take");
      add("renew");
      add("take", "F");
    }
    expect(passed).toEqual(["take E 1", "renew E 1", "take F 1"]);
  });

  it("are reported at the close, including the last one", () => {
    const { passed, add, limiter } = setUp();
    for (let time = 0; time < 5; time++) add("take");
    limiter.close();
    expect(passed).toEqual(["take E 1", "take E 4"]);
  });

  it("are reported without a timer too, as soon as another one comes after their time", () => {
    let now = 0;
    const passed: number[] = [];
    const clock = { now: () => now, monotonic: () => now, after: () => () => {} };
    const limiter = new Limiter({
      clock,
      periodMs: 10_000,
      pass: () => passed.push(1),
      passSummary: (_, suppressed) => passed.push(suppressed),
    });
    for (now = 0; now <= 10_000; now += 1_000) limiter.add("take", "E", 1, 1);
    expect(passed).toEqual([1, 9, 1]);
  });

  it("of however many kinds are known to a bounded number, and none is left uncounted", () => {
    const { passed, add, limiter } = setUp();
    for (let kind = 0; kind < 1_000; kind++) {
      add("take", `E${kind}`);
      add("take", `E${kind}`);
    }
    expect(passed.length).toBeGreaterThanOrEqual(1_900);
    limiter.close();
    expect(passed).toHaveLength(2_000);
  });
});

it("a receiver whose store is away reports few errors to its observer, with their count", async () => {
  const clock = fakeClock();
  let isAway = false;
  const store: RecordStore = {
    ...memoryStore({ clock }),
    endsWithProcess: false,
    takeDue() {
      if (isAway) throw new Error("away");
      return { records: [], left: { usual: 0, patient: 0 }, nextDueAt: null };
    },
  };
  const notices: Notice[] = [];
  const receiver = createReceiver({
    payments: { publicKey: createTestKeys().publicKey },
    inbox: createInbox(store, { clock }),
    clock,
    logger: silent,
  });
  receiver.onDeposit(() => {}).ignore("WITHDRAWAL");
  receiver.observe((notice) => notices.push(notice));
  await receiver.start();
  isAway = true;
  await clock.advance("60s");
  const errors = notices.filter((notice) => notice.type === "inbox-error");
  expect(errors.length).toBeGreaterThanOrEqual(5);
  expect(errors.length).toBeLessThanOrEqual(7);
  const counted = errors.reduce((sum, { count }) => sum + count, 0);
  expect(counted).toBeGreaterThan(90);
  const closing = receiver.close({ graceMs: 0 });
  await clock.advance(1);
  await closing;
});

it("after a look that failed, neither a wake-up nor a hint brings the next one before its time", async () => {
  const clock = fakeClock();
  const looks: number[] = [];
  const start = clock.now();
  const places = new Places(clock);
  places.open(1);
  const dispatcher = new Dispatcher({
    core: {
      store: {
        ...memoryStore({ clock }),
        takeDue() {
          looks.push(clock.now() - start);
          throw new Error("away");
        },
      },
      environment: clock,
      operations: new StoreOperations(clock, () => {}),
      hideMs: 5_000,
    },
    places,
    crowds: new Crowds(places, clock),
    pollMs: 60_000,
  });
  const runner: Runner = {
    run: () => Promise.reject(new Error("nothing runs")),
    firstHandler: () => null,
    handlersOf: () => [],
    notify: () => {},
  };
  dispatcher.start(runner, () => {});
  for (let ms = 0; ms < 2_000; ms += 10) {
    await clock.advance(10);
    dispatcher.wake(0);
    dispatcher.onHint();
    dispatcher.wake(1);
  }
  expect(looks.length).toBeGreaterThanOrEqual(3);
  expect(looks.length).toBeLessThanOrEqual(5);
  dispatcher.stop();
});
