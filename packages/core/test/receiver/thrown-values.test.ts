/** Any value thrown by merchant's code is a failed attempt. */
import { createReceiver, isPayhooksError, memoryInbox, type Notice } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { HOSTILE } from "../../../../test/support/hostile-values.ts";
import { silent } from "../../../../test/support/silent.ts";
import { isReject, retryAfterOf } from "../../src/handlers/handler.ts";
import { factsOfThrown } from "../../src/notices/thrown.ts";
import { describeError, errorWithoutData, originOf } from "../../src/protocol/foreign-error.ts";
import { deliveryOf } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();

describe.each(Object.entries(HOSTILE))("%s", (_, make) => {
  it("can be described without an error", () => {
    const thrown = make();
    expect(factsOfThrown(thrown).error.length).toBeLessThanOrEqual(501);
    expect(typeof describeError(thrown)).toBe("string");
    originOf(thrown);
    if (!isPayhooksError(thrown)) expect(errorWithoutData(thrown)).toBeInstanceOf(Error);
    expect(isReject(thrown)).toBe(false);
    expect(retryAfterOf(thrown)).toBeNull();
  });

  it.each(["by throwing", "by rejecting"])("thrown by any call %s is a failed attempt", async (way) => {
    const fail = (): unknown => {
      if (way === "by throwing") throw make();
      return Promise.reject(make());
    };
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    const receiver = createReceiver({ payments: { publicKey }, inbox, clock, logger: silent });
    const notices: Notice[] = [];
    let notified = 0;
    receiver.observe((notice) => notices.push(notice));
    receiver.observe(fail as () => void);
    receiver
      .ignore("WITHDRAWAL")
      .onDeposit(fail, {
        maxAttempts: 2,
        backoffMs() {
          throw make();
        },
      })
      .onHeld(
        () => {
          notified++;
          return fail();
        },
        { maxAttempts: 2, backoffMs: () => 100 },
      );
    await receiver.start();
    const sent = signPaymentCallback(callbackFields({}, clock.now()), privateKey);
    expect((await receiver.payments.receive(deliveryOf(sent))).status).toBe(200);
    for (let turn = 0; turn < 8; turn++) await clock.advance("1s");
    const [held] = (await receiver.events.list({ state: "held" })).events;
    expect(held?.reason).toBe("exhausted");
    expect(notified).toBe(2);
    expect(notices.filter(({ type }) => type === "inbox-error")).toEqual([]);
    expect(notices.filter(({ type }) => type === "given-up").length).toBe(2);
    await receiver.close({ graceMs: 0 });
  });

  it("thrown by a resolver and by notifyWorker breaks nothing", async () => {
    const clock = fakeClock();
    const fail = (): never => {
      throw make();
    };
    const sent = signPaymentCallback(callbackFields({}, clock.now()), privateKey);
    const given = { clock, logger: silent, run: "elsewhere" } as const;
    const resolving = createReceiver({
      ...given,
      payments: { publicKey: fail },
      inbox: memoryInbox({ clock }),
    });
    expect((await resolving.payments.receive(deliveryOf(sent))).status).toBe(503);
    const receiver = createReceiver({
      ...given,
      payments: { publicKey },
      inbox: memoryInbox({ clock }),
      notifyWorker: fail,
    });
    receiver.onDeposit(() => {});
    expect((await receiver.payments.receive(deliveryOf(sent))).status).toBe(200);
    expect(await receiver.work()).toMatchObject({ ran: 1, failed: 0 });
  });
});
