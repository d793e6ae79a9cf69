/**
 * Another receiver has handled an event, or may have (docs/guides/moving.md). It ends without a call of its handlers, whenever that is
 * said, and in whichever process.
 */
import type { ReceiverOptions } from "@payhooks/core";
import { expect } from "vitest";
import {
  type ContractCase,
  dyingAt,
  newGate,
  onFreshData,
  type Process,
  type Rig,
} from "./inbox-processes.ts";
import { depositOf, type MerchantReceiver, merchantKeys, merchantOn, noticed } from "./merchant-receiver.ts";

interface Moving extends MerchantReceiver {
  /** The payments that its handler was called with. */
  readonly ran: string[];
  /** Says that another receiver has handled a payment. Resolves to the state of the event then. */
  mark(payTxnId: string, options?: MarkOptions): Promise<string | null>;
}

interface MarkOptions {
  readonly certain?: boolean;
  readonly tenant?: string;
}

/** A merchant that marks events, or runs what was not marked when it is told to work. */
function movingOn(
  rig: Rig,
  process: Process = rig.start(),
  handle: () => unknown = () => {},
  payments?: ReceiverOptions["payments"],
): Moving {
  const ran: string[] = [];
  const merchant = merchantOn(
    process,
    (receiver) =>
      receiver.onDeposit(
        async ({ payTxnId }) => {
          ran.push(payTxnId);
          await handle();
        },
        { backoffMs: () => rig.leaseMs },
      ),
    { payments },
  );
  return {
    ...merchant,
    ran,
    async mark(id, { certain = true, tenant } = {}) {
      const event = { id, event: "DEPOSIT", status: "SUCCESS", ...(tenant !== undefined && { tenant }) };
      const { state } = await rig.until(merchant.receiver.payments.markHandled(event, { certain }));
      return state;
    },
  };
}

const paymentOf = (rig: Rig, payTxnId: string) => depositOf(rig, { payTxnId, referenceId: `of ${payTxnId}` });

/** Delivers a copy, lets everything run that is due, and expects that no handler was called. */
async function expectNoRun(rig: Rig, merchant: Moving, payTxnId: string): Promise<void> {
  await merchant.deliver(paymentOf(rig, payTxnId));
  await rig.until(merchant.work());
  expect(merchant.ran).toEqual([]);
}

/** Marks an event as a shadow does it: again and again, until no other process has it. */
async function markUntilEnded(merchant: Moving, payTxnId: string): Promise<string | null> {
  for (let times = 0; times < 20; times++) {
    const state = await merchant.mark(payTxnId);
    if (state !== "running" && state !== "waiting") return state;
  }
  return expect.fail("it has never ended");
}

export const markHandledCases: readonly ContractCase[] = [
  onFreshData(
    "an event that another receiver has handled before its delivery arrives is a duplicate then",
    async (rig) => {
      const [shadow, next] = [movingOn(rig), movingOn(rig)];
      expect(await shadow.mark("tx-1")).toBe("done");
      await expectNoRun(rig, next, "tx-1");
      expect(await noticed(next, "duplicate")).toHaveLength(1);
      expect(await next.receiver.events.counts()).toMatchObject({ waiting: 0, retrying: 0, held: 0 });
      await next.deliver(paymentOf(rig, "tx-2"));
      await rig.until(next.work());
      expect(next.ran).toEqual(["tx-2"]);
    },
  ),
  onFreshData("an event that waits when another receiver has handled it is not run any more", async (rig) => {
    const [shadow, next] = [movingOn(rig), movingOn(rig)];
    const eventId = await next.deliver(paymentOf(rig, "tx-1"));
    expect(await shadow.mark("tx-1")).toBe("done");
    expect(await next.storedEvent(eventId)).toMatchObject({ state: "done", handlers: {} });
    expect(await next.receiver.events.counts()).toMatchObject({
      waiting: 0,
      running: 0,
      oldestDueMs: null,
    });
    await expectNoRun(rig, next, "tx-1");
  }),
  onFreshData(
    "to mark an event twice, or in several processes at one time, is to mark it once",
    async (rig) => {
      const all = [movingOn(rig), movingOn(rig), movingOn(rig)];
      const [next] = all as [Moving, ...Moving[]];
      for (const isKnown of [false, true]) {
        const id = `tx-${isKnown}`;
        if (isKnown) await next.deliver(paymentOf(rig, id));
        const states = await Promise.all([...all, ...all].map((one) => one.mark(id)));
        expect(states).toEqual(states.map(() => "done"));
        expect(await next.mark(id)).toBe("done");
        const { events } = await next.receiver.events.list({ state: "unfinished" });
        expect(events).toEqual([]);
        await expectNoRun(rig, next, id);
      }
    },
  ),
  onFreshData(
    "an event that another receiver has handled for one tenant runs for another tenant",
    async (rig) => {
      const { publicKey } = merchantKeys();
      const payments = {
        publicKey: ({ merchantId = "" }: { readonly merchantId?: string }) => ({
          tenant: merchantId,
          keys: publicKey,
        }),
      };
      const [shadow, next] = [0, 1].map(() => movingOn(rig, rig.start(), () => {}, payments)) as [
        Moving,
        Moving,
      ];
      const paymentAt = (merchantId: string) => ({ ...paymentOf(rig, "tx-1"), merchantId });
      expect(await shadow.mark("tx-1", { tenant: "a" })).toBe("done");
      await next.deliver(paymentAt("a"));
      await rig.until(next.work());
      expect(next.ran).toEqual([]);
      const eventId = await next.deliver(paymentAt("b"));
      expect(await shadow.mark("tx-1", { tenant: "a" })).toBe("done");
      await rig.until(next.work());
      expect(next.ran).toEqual(["tx-1"]);
      expect(await next.storedEvent(eventId)).toMatchObject({ tenant: "b", state: "done" });
    },
  ),
  onFreshData("a mark while a handler runs says so, and changes nothing", async (rig) => {
    const [called, release] = [newGate(), newGate()];
    const next = movingOn(rig, rig.start(), () => {
      called.open();
      return release.passed;
    });
    const shadow = movingOn(rig);
    const eventId = await next.deliver(paymentOf(rig, "tx-1"));
    const working = next.work();
    await rig.until(called.passed);
    for (const one of [shadow, next]) expect(await one.mark("tx-1")).toBe("running");
    for (const one of [shadow, next]) expect(await one.mark("tx-1", { certain: false })).toBe("running");
    expect(await next.storedEvent(eventId)).toMatchObject({ state: "running" });
    release.open();
    await rig.until(working);
    expect(next.ran).toEqual(["tx-1"]);
    expect(await next.storedEvent(eventId)).toMatchObject({ state: "done" });
    expect(await shadow.mark("tx-1")).toBe("done");
  }),
  onFreshData(
    "an event that another receiver has handled after a failed attempt is not tried again",
    async (rig) => {
      const next = movingOn(rig, rig.start(), () => {
        throw new Error("the bank is away");
      });
      const shadow = movingOn(rig);
      const eventId = await next.deliver(paymentOf(rig, "tx-1"));
      await rig.until(next.work());
      expect(await next.storedEvent(eventId)).toMatchObject({ state: "retrying" });
      expect(await shadow.mark("tx-1")).toBe("done");
      await rig.advance(rig.leaseMs * 2);
      await rig.until(next.work());
      expect(next.ran).toEqual(["tx-1"]);
    },
  ),
  onFreshData("a mark of an event that is held, or was discarded, says so", async (rig) => {
    const [shadow, next] = [movingOn(rig), movingOn(rig)];
    await next.deliver({ ...paymentOf(rig, "tx-1"), status: "FAILED" });
    await rig.until(next.work());
    const eventId = await next.deliver(paymentOf(rig, "tx-1"));
    expect(await next.storedEvent(eventId)).toMatchObject({ state: "held", reason: "conflict" });
    expect(await shadow.mark("tx-1")).toBe("held");
    expect(await next.storedEvent(eventId)).toMatchObject({ state: "held", reason: "conflict" });
    await next.receiver.events.discard(eventId, { by: "amina", note: "in the books" });
    expect(await shadow.mark("tx-1")).toBe("discarded");
  }),
  onFreshData(
    "an event that may have been handled is held until that is certain, and then discarded",
    async (rig) => {
      const [shadow, next] = [movingOn(rig), movingOn(rig)];
      for (const isKnown of [false, true]) {
        const id = `tx-${isKnown}`;
        if (isKnown) await next.deliver(paymentOf(rig, id));
        const doubts = await Promise.all([shadow, next].map((one) => one.mark(id, { certain: false })));
        expect(doubts).toEqual(["held", "held"]);
        expect(await next.receiver.events.list({ state: "held" })).toMatchObject({
          events: [{ reason: "rejected" }],
        });
        await expectNoRun(rig, next, id);
        const certain = await Promise.all([shadow.mark(id), next.mark(id)]);
        expect(certain).toEqual(["discarded", "discarded"]);
        await expectNoRun(rig, next, id);
      }
      await next.deliver(paymentOf(rig, "tx-both"));
      const both = await Promise.all([shadow.mark("tx-both", { certain: false }), next.mark("tx-both")]);
      expect(["done", "discarded"]).toContain(both[1]);
      await expectNoRun(rig, next, "tx-both");
    },
  ),
  ...[false, true].flatMap((isKnown) =>
    (["before", "after"] as const).flatMap((moment) =>
      (["begin", "finish done", "finish held"] as const).map((write) =>
        onFreshData(
          `a process dies ${moment} the write "${write}" of its mark of ${isKnown ? "a known" : "an unknown"} event: the next mark ends it`,
          async (rig) => {
            const next = movingOn(rig);
            if (isKnown) await next.deliver(paymentOf(rig, "tx-1"));
            const dying = movingOn(rig, dyingAt(rig, moment, write));
            const certain = write !== "finish held";
            void dying.receiver.payments
              .markHandled({ id: "tx-1", event: "DEPOSIT", status: "SUCCESS" }, { certain })
              .catch(() => {});
            await rig.until(dying.process.dead);
            const state = await markUntilEnded(movingOn(rig), "tx-1");
            expect(state).toBe(write === "finish held" && moment === "after" ? "discarded" : "done");
            await expectNoRun(rig, next, "tx-1");
          },
        ),
      ),
    ),
  ),
];
