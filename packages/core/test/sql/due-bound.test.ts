import { expect, it } from "vitest";
import { DueBound, type PollResult } from "../../src/sql/due-bound.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";

const LATE_MS = 13_000;
const NOW = 1_000_000_000;
const MINUTE_MS = 60_000;

/** A bound whose complete looks the test answers. */
function boundWith(...answers: readonly (PollResult | Error | Promise<PollResult>)[]) {
  const clock = fakeClock();
  let asked = 0;
  const bound = new DueBound({
    environment: environmentOf(clock),
    statementTimeoutMs: 1_500,
    serverNow: () => NOW,
    findOldest: async () => {
      const answer = answers[asked++] ?? { now: NOW, oldest: null };
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  return { bound, clock, asked: () => asked };
}

it("the bound begins at the earliest of all records at first, however long ago that is due", async () => {
  const { bound } = boundWith({ now: NOW, oldest: 5 });
  expect(await bound.pollStart()).toBe(5);
});

it("follows the records that are left, but is never later than one that may still appear", async () => {
  const { bound } = boundWith({ now: NOW, oldest: 5 });
  bound.recordPoll(await bound.pollStart(), { now: NOW, oldest: NOW - 20_000 });
  expect(await bound.pollStart()).toBe(NOW - 20_000);
  bound.recordPoll(await bound.pollStart(), { now: NOW + 1_000, oldest: NOW });
  expect(await bound.pollStart()).toBe(NOW + 1_000 - LATE_MS);
  bound.recordPoll(await bound.pollStart(), { now: NOW + 2_000, oldest: null });
  expect(await bound.pollStart()).toBe(NOW + 2_000 - LATE_MS);
});

it("the bound goes back with the server's clock", async () => {
  const { bound } = boundWith();
  bound.recordPoll(await bound.pollStart(), { now: NOW - 3_600_000, oldest: null });
  expect(await bound.pollStart()).toBe(NOW - 3_600_000 - LATE_MS);
});

it("the bound is complete again every ten minutes, beside the looks that go on", async () => {
  let answer: (found: PollResult) => void = () => {};
  const late = new Promise<PollResult>((resolve) => {
    answer = resolve;
  });
  const { bound, clock, asked } = boundWith({ now: NOW, oldest: null }, late);
  const from = await bound.pollStart();
  await clock.advance(9 * MINUTE_MS);
  await bound.pollStart();
  expect(asked()).toBe(1);
  await clock.advance(MINUTE_MS);
  expect(await bound.pollStart()).toBe(from);
  expect(asked()).toBe(2);
  const begun = await bound.pollStart();
  answer({ now: NOW, oldest: 7 });
  await late;
  await Promise.resolve();
  expect(await bound.pollStart()).toBe(7);
  // A look that began above it does not lift it.
  bound.recordPoll(begun, { now: NOW, oldest: null });
  expect(await bound.pollStart()).toBe(7);
  expect(asked()).toBe(2);
});

it("the bound reports a complete look that failed, and does without it until the next one, which comes soon", async () => {
  const { bound, clock, asked } = boundWith(new Error("took too long"), new Error("took too long again"), {
    now: NOW,
    oldest: 9,
  });
  await expect(bound.pollStart()).rejects.toThrow("took too long");
  bound.throwFailure();
  bound.recordPoll(await bound.pollStart(), { now: NOW, oldest: null });
  expect(await bound.pollStart()).toBe(NOW - LATE_MS);
  expect(asked()).toBe(1);
  await clock.advance(MINUTE_MS / 2);
  expect(await bound.pollStart()).toBe(NOW - LATE_MS);
  expect(asked()).toBe(2);
  expect(() => bound.throwFailure()).toThrow("took too long again");
  bound.throwFailure();
  await clock.advance(MINUTE_MS / 2);
  await bound.pollStart();
  expect(await bound.pollStart()).toBe(9);
});
