import { readFile } from "node:fs/promises";
import { type Receiver, RetryAfter } from "@payhooks/core";
import { createHarness, createTestKeys, fakeClock, type Harness } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";

const keys = createTestKeys();
const harness = (register: (receiver: Receiver) => unknown, now?: number): Promise<Harness> =>
  createHarness({ register, keys, now });

const MINUTE_MS = 60_000;

it("the harness runs a merchant's handler once per event, and again only after a crash", async () => {
  const effects: string[] = [];
  const t = await harness((receiver) =>
    receiver.onDeposit(
      async (deposit, ctx) => void effects.push(`${deposit.referenceId} ${ctx.effectId} ${ctx.attempt}`),
    ),
  );
  const delivery = await t.deposit({ referenceId: "o-1" });
  expect(delivery).toMatchObject({ status: 200, outcome: "done", ran: ["deposit"] });
  expect(await t.redeliver(delivery)).toMatchObject({ status: 200, outcome: "done", ran: [] });
  expect(await t.advance("1h")).toEqual([]);
  expect(await t.crashAfter("deposit", delivery)).toMatchObject({ outcome: "done", ran: ["deposit"] });
  const [first, second] = effects.map((line) => line.split(" "));
  expect(effects).toHaveLength(2);
  expect(second?.[1]).toBe(first?.[1]);
  expect([first?.[2], second?.[2]]).toEqual(["1", "2"]);
});

describe("advance", () => {
  it("runs every retry that is due within it, in their order and at their time", async () => {
    const attempts: string[] = [];
    const t = await harness((receiver) => {
      const start = (): number => t.clock.now() - signedAt;
      const failing = async (): Promise<never> => {
        throw new Error("the order service is down");
      };
      const backoff = (name: string, minutes: number) => ({
        maxAttempts: 4,
        backoffMs: (attempt: number): number => {
          attempts.push(`${name} ${attempt} at ${Math.round(start() / MINUTE_MS)}m`);
          return minutes * MINUTE_MS;
        },
      });
      receiver.onDeposit(failing, backoff("deposit", 60)).onWithdrawal(failing, backoff("withdrawal", 25));
    });
    const signedAt = t.clock.now();
    await t.deposit();
    await t.withdrawal();
    attempts.length = 0;
    expect(await t.advance("2h")).toEqual(["withdrawal", "withdrawal", "deposit", "withdrawal", "deposit"]);
    // The fourth attempt of the withdrawal is its last: no backoff is asked for.
    expect(attempts).toEqual([
      "withdrawal 2 at 25m",
      "withdrawal 3 at 50m",
      "deposit 2 at 60m",
      "deposit 3 at 120m",
    ]);
    expect((await t.held()).map(({ event, reason }) => `${event} ${reason}`)).toEqual([
      "WITHDRAWAL exhausted",
    ]);
    expect(t.clock.now() - signedAt).toBe(120 * MINUTE_MS);
  });

  it("over two days uses up every attempt of a handler that never succeeds", async () => {
    let attempts = 0;
    const t = await harness((receiver) =>
      receiver.onDeposit(() => {
        attempts++;
        throw new Error("never");
      }),
    );
    await t.deposit();
    expect(await t.advance("2d")).toHaveLength(24);
    expect(attempts).toBe(25);
    expect(await t.held()).toMatchObject([{ reason: "exhausted" }]);
  });

  it("leaves events that are due later", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, { attempt }) => {
        if (attempt === 1) throw new RetryAfter(3 * 24 * 60 * MINUTE_MS);
      }),
    );
    const delivery = await t.deposit();
    expect(await t.advance("2d")).toEqual([]);
    expect(await t.receiver.events.get(delivery.eventId ?? "")).toMatchObject({ state: "retrying" });
    expect(await t.advance("1d")).toEqual(["deposit"]);
    expect(await t.receiver.events.get(delivery.eventId ?? "")).toMatchObject({ state: "done" });
  });

  it("reports the outcome of a SUCCESS, and not of the waiting PENDING that it overtook", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit({
        PENDING: () => {
          throw new Error("not yet");
        },
        SUCCESS: () => {},
      }),
    );
    const fields = { payTxnId: "t-1", referenceId: "order-1", amount: "10.000000" };
    const pending = await t.deposit({ ...fields, status: "PENDING" });
    const success = await t.deposit({ ...fields, status: "SUCCESS" });
    expect([pending.outcome, success.outcome]).toEqual(["retrying", "done"]);
    expect(success.eventId).not.toBe(pending.eventId);
  });

  it("waits for what a handler really does, and the clock with it", async () => {
    const seen: number[] = [];
    const t = await harness((receiver) =>
      receiver.onDeposit(async (_, { attempt }) => {
        const before = t.clock.now();
        for (let n = 0; n < 20; n++) await readFile(new URL(import.meta.url));
        seen.push(t.clock.now() - before);
        if (attempt < 3) throw new RetryAfter(1_000);
      }),
    );
    await t.deposit();
    expect(await t.advance("1m")).toEqual(["deposit", "deposit"]);
    expect(seen).toEqual([0, 0, 0]);
  });

  it("lets the time of a handler that hangs run out, where its delivery is not awaited", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, { attempt }) => (attempt === 1 ? new Promise(() => {}) : undefined), {
        onTimeout: "rerun",
      }),
    );
    const delivering = t.deposit();
    expect(await t.advance("5m")).toEqual(["deposit", "deposit"]);
    // Its own attempt was over then, and the retry still due.
    expect(await delivering).toMatchObject({ status: 200, outcome: "retrying" });
    expect(await t.receiver.health()).toMatchObject({ waiting: 0, running: 0 });
    expect(t.notices).toContainEqual(expect.objectContaining({ type: "double-risk", why: "timeout" }));
  });

  it("is the clock's own: code that shares the clock need not know the harness", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit((_, { attempt }) => {
        if (attempt === 1) throw new RetryAfter(5_000);
      }),
    );
    const { eventId } = await t.deposit();
    await t.clock.advance("5s");
    expect(await t.receiver.events.get(eventId ?? "")).toMatchObject({ state: "done" });
  });

  it.each(["2 days", "1w", "", -1, Number.NaN])("refuses %j", async (duration) => {
    const clock = fakeClock();
    await expect(clock.advance(duration as number)).rejects.toThrow(/^Not a duration: .* Write milliseconds/);
  });
});

it("the harness begins at the given time, and signs deliveries with it", async () => {
  const now = Date.parse("2026-03-01T08:00:00Z");
  const received: string[] = [];
  const t = await harness(
    (receiver) =>
      receiver.onDeposit(({ timestamp }, { receivedAt }) => {
        received.push(timestamp.slice(0, 19), receivedAt.toISOString());
      }),
    now,
  );
  expect(await t.deposit()).toMatchObject({ outcome: "done" });
  expect(received).toEqual(["2026-03-01T08:00:00", "2026-03-01T08:00:00.000Z"]);
});

it("crashes one delivery's handler, and reports no retries of others meanwhile", async () => {
  const t = await harness((receiver) =>
    receiver
      .onDeposit(() => {})
      .onWithdrawal((_, { attempt }) => {
        if (attempt < 3) throw new RetryAfter(1_000);
      }),
  );
  await t.withdrawal();
  const delivery = await t.deposit();
  expect((await t.crashAfter("deposit", delivery)).ran).toEqual(["deposit"]);
});
