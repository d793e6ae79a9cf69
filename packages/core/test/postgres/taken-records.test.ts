import { expect, it } from "vitest";
import { type LapseQueryResult, TakenRecords } from "../../src/postgres/taken-records.ts";
import { DueBound } from "../../src/sql/due-bound.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import { environmentOf } from "../../src/time/environment.ts";

const NOW = 1_000_000_000;
const HIDE_MS = 5_000;
const AHEAD_MS = HIDE_MS / 2;

function takenRecords() {
  const bound = new DueBound({
    environment: environmentOf(fakeClock()),
    statementTimeoutMs: 1_500,
    serverNow: () => NOW,
    findOldest: async () => ({ now: NOW, oldest: null }),
  });
  const taken = new TakenRecords(bound);
  const look = (now: number) => taken.nextQuery(now, HIDE_MS);
  /** Makes a look, which finds this. */
  async function looks(now: number, found: Partial<LapseQueryResult> = {}): Promise<void> {
    const made = await look(now);
    if (made === null) expect.fail("no look is due");
    taken.recordResult(made, { now, oldest: null, nextEndAt: null, ...found });
  }
  return { taken, look, looks };
}

it("the first poll looks, and the next one that does is half a hiding later", async () => {
  const { look, looks } = takenRecords();
  await looks(NOW);
  expect(await look(NOW + AHEAD_MS - 1)).toBeNull();
  expect(await look(NOW + AHEAD_MS)).toMatchObject({ aheadMs: AHEAD_MS });
});

it("the next look is due at the end that the last one has found", async () => {
  const { look, looks, taken } = takenRecords();
  await looks(NOW, { nextEndAt: NOW + 40 });
  expect(taken.nothingEndsBefore).toBe(NOW + 40);
  expect(await look(NOW + 39)).toBeNull();
  expect(await look(NOW + 40)).not.toBeNull();
});

it("while something is left that has ended, every poll looks", async () => {
  const { look, looks } = takenRecords();
  await looks(NOW, { oldest: NOW - 1, nextEndAt: NOW + 40 });
  expect(await look(NOW)).not.toBeNull();
});

it("a record that this process takes for a short time is looked at when that ends", async () => {
  const { look, looks, taken } = takenRecords();
  await looks(NOW);
  taken.noteTakenUntil(NOW + 10);
  expect(await look(NOW + 9)).toBeNull();
  expect(await look(NOW + 10)).not.toBeNull();
});

it("a look does not forget what this process takes meanwhile", async () => {
  const { look, taken } = takenRecords();
  const made = await look(NOW);
  taken.noteTakenUntil(NOW + 10);
  if (made === null) expect.fail("no look is due");
  taken.recordResult(made, { now: NOW, oldest: null, nextEndAt: null });
  expect(await look(NOW + 10)).not.toBeNull();
});

it("if the server's clock goes back, the next poll looks", async () => {
  const { look, looks } = takenRecords();
  await looks(NOW);
  expect(await look(NOW - 3_600_000)).not.toBeNull();
});
