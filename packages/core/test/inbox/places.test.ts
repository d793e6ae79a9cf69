import { createReceiver, memoryInbox } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { Places } from "../../src/inbox/places.ts";
import { settle } from "../../src/testing/clock.ts";
import { deliveryOf } from "../receiving.ts";

describe("places", () => {
  it("leave room for many while handlers are quick, and for as many as run while they are slow", async () => {
    const clock = fakeClock();
    const places = new Places(clock);
    expect(places.room).toBe(0);
    places.open(16);
    expect(places.room).toBeGreaterThanOrEqual(16 + 256);
    for (let run = 0; run < 100; run++) {
      const leave = places.enter();
      await clock.advance("1s");
      leave();
    }
    expect(places.room).toBe(16);
    places.reserve();
    expect(places.room).toBe(15);
    places.giveBack();
    expect(places.room).toBe(16);
  });
});

describe("events that were begun and get no place", () => {
  it("are handed back before others would have to wait for the lease, and count as no attempt", async () => {
    const keys = createTestKeys();
    const clock = fakeClock();
    const attempts: number[] = [];
    const warnings: string[] = [];
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox: memoryInbox({ clock, leaseMs: 30_000 }),
      clock,
      concurrency: 2,
      logger: silent,
    });
    let open = 0;
    receiver
      .onDeposit(async (_, { attempt }) => {
        attempts.push(attempt);
        open++;
        await new Promise<void>((resolve) => void clock.after(1_000, resolve));
        open--;
      })
      .observe(({ type }) => void (type === "double-risk" && warnings.push(type)));
    await receiver.start();
    for (let n = 0; n < 10; n++) {
      const fields = callbackFields({ payTxnId: `t-${n}`, referenceId: `o-${n}` }, clock.now());
      const { status } = await receiver.payments.receive(
        deliveryOf(signPaymentCallback(fields, keys.privateKey)),
      );
      expect(status).toBe(200);
    }
    await settle();
    expect([attempts.length, open]).toEqual([2, 2]);
    expect(await receiver.health()).toMatchObject({ running: 10, waiting: 0 });
    await clock.advance(300);
    expect(await receiver.health()).toMatchObject({ running: 2, waiting: 8 });
    await clock.advance("6s");
    expect(attempts).toEqual(Array(10).fill(1));
    expect(warnings).toEqual([]);
    await receiver.close();
  });
});
