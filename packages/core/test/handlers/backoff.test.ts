import { createReceiver, memoryInbox } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { defaultBackoffMs, uncountedBackoffMs } from "../../src/handlers/handler.ts";
import { settle } from "../../src/testing/clock.ts";
import { type Environment, environmentOf, tokenMaker } from "../../src/time/environment.ts";
import { deliveryOf } from "../receiving.ts";

const keys = createTestKeys();

/** The delays after the first attempts of twenty deposits, in a process whose tokens are always the same. */
async function firstDelays(): Promise<readonly number[]> {
  const clock = fakeClock();
  const environment: Environment = { ...environmentOf(clock), token: tokenMaker("same-") };
  const delays: number[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: memoryInbox({ clock: environment }),
    clock: environment,
    logger: silent,
  });
  receiver
    .onDeposit(() => Promise.reject(new Error("no stock")))
    .ignore("WITHDRAWAL")
    .observe((notice) => {
      if (notice.type === "retry" && notice.attempt === 1) delays.push(notice.delayMs);
    });
  await receiver.start();
  for (let n = 0; n < 20; n++) {
    const fields = callbackFields({ payTxnId: `p-${n}`, referenceId: `o-${n}` }, clock.now());
    await receiver.payments.receive(deliveryOf(signPaymentCallback(fields, keys.privateKey)));
    await settle();
  }
  await receiver.close({ graceMs: 0 });
  return delays;
}

describe("the default backoff", () => {
  it("is decided by the tokens of the environment, so that a simulation repeats it", async () => {
    const delays = await firstDelays();
    expect(delays).toHaveLength(20);
    expect(new Set(delays).size).toBeGreaterThan(10);
    expect(await firstDelays()).toEqual(delays);
  });

  it("is 1 s after the first attempt, twice as long after each further one, and an hour at most; ± 50 %", () => {
    const token = tokenMaker("process-");
    for (const [attempt, seconds] of [
      [1, 1],
      [2, 2],
      [5, 16],
      [13, 3_600],
      [1_000, 3_600],
    ] as const) {
      const factors = Array.from({ length: 200 }, () => defaultBackoffMs(attempt, token()) / seconds / 1_000);
      expect(Math.min(...factors)).toBeGreaterThanOrEqual(0.5);
      expect(Math.min(...factors)).toBeLessThan(0.6);
      expect(Math.max(...factors)).toBeGreaterThan(1.4);
      expect(Math.max(...factors)).toBeLessThanOrEqual(1.5);
    }
  });

  it("after calls that do not count is 1 s, then twice as long as the last one, and 30 s at most; ± 50 %", () => {
    for (const [lastMs, seconds] of [
      [0, 1],
      [4_000, 8],
      [60_000, 30],
    ] as const) {
      const ms = uncountedBackoffMs(lastMs, "token");
      expect(ms).toBe(uncountedBackoffMs(lastMs, "token"));
      expect(ms).toBeGreaterThanOrEqual(seconds * 500);
      expect(ms).toBeLessThanOrEqual(seconds * 1_500);
    }
  });
});
