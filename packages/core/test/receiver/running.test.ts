import {
  createReceiver,
  isPayhooksError,
  memoryInbox,
  type Notice,
  type ReceiverOptions,
} from "@payhooks/core";
import { createInbox, memoryStore } from "@payhooks/core/inbox";
import {
  callbackFields,
  createTestKeys,
  type FakeClock,
  fakeClock,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { settle } from "../../src/testing/clock.ts";
import { deliveryOf, rejectedBy } from "../receiving.ts";

const keys = createTestKeys();

/** A receiver in memory whose handler writes down each deposit, and may be made to wait. */
async function start(options: Partial<ReceiverOptions> = {}) {
  const clock: FakeClock = fakeClock();
  const ran: string[] = [];
  const notices: Notice[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: memoryInbox({ clock }),
    clock,
    logger: silent,
    ...options,
  });
  receiver.onDeposit((deposit) => void ran.push(deposit.payTxnId)).observe((notice) => notices.push(notice));
  await receiver.start();
  return {
    receiver,
    clock,
    ran,
    notices,
    async send(payTxnId: string) {
      const fields = callbackFields({ payTxnId, referenceId: `o-${payTxnId}` }, clock.now());
      const { status } = await receiver.payments.receive(
        deliveryOf(signPaymentCallback(fields, keys.privateKey)),
      );
      await settle();
      return status;
    },
    eventId: (type: Notice["type"]) =>
      notices.flatMap((notice) => (notice.type === type && "eventId" in notice ? [notice.eventId] : []))[0] ??
      "",
  };
}

/** The service's answer about a deposit. */
function lookup(payTxnId: string): never {
  const fields = callbackFields({ payTxnId });
  return {
    id: fields.payTxnId,
    reference: fields.referenceId,
    type: "DEPOSIT",
    status: "SUCCESS",
    base_amount: fields.amount,
    callback_url: fields.callbackUrl,
    updated_at: fields.timestamp,
  } as never;
}

describe("pause", () => {
  it("lets no run begin until resume, and deliveries are still accepted", async () => {
    const t = await start();
    t.receiver.pause();
    await settle();
    expect([await t.send("a"), await t.send("b")]).toEqual([200, 200]);
    expect(t.ran).toEqual([]);
    expect(await t.receiver.health()).toMatchObject({ waiting: 2, running: 0 });
    t.receiver.resume();
    await settle();
    expect(t.ran.sort()).toEqual(["a", "b"]);
    await t.receiver.close();
  });

  it("holds from the start on if it was called before", async () => {
    const t = await start({ run: "background" });
    t.receiver.pause();
    await t.receiver.start();
    await settle();
    await t.send("a");
    expect(t.ran).toEqual([]);
    await t.receiver.work();
    // A call of `work` with the event's name runs it.
    expect(t.ran).toEqual(["a"]);
    await t.receiver.close();
  });
});

describe("notifyWorker", () => {
  it("is called for each event that this process accepts and does not run, and not for copies", async () => {
    const notified: string[] = [];
    const t = await start({ run: "elsewhere", notifyWorker: (eventId) => void notified.push(eventId) });
    await t.send("a");
    await t.send("a");
    expect(notified).toEqual([t.eventId("accepted")]);
    expect(await t.receiver.run(notified[0] ?? "")).toEqual({ state: "done", ran: true });
    expect(t.ran).toEqual(["a"]);
    expect(await t.receiver.run(notified[0] ?? "")).toEqual({ state: "done", ran: false });
    await t.receiver.close();
  });

  it("is called once for a look-up that was stored", async () => {
    const notified: string[] = [];
    const t = await start({ run: "elsewhere", notifyWorker: (eventId) => void notified.push(eventId) });
    const transaction = lookup("a");
    for (let n = 0; n < 2; n++) await t.receiver.payments.ingest(transaction);
    expect(notified).toHaveLength(1);
    await t.receiver.close();
  });

  it("has been called when ingest returns, since no platform waits after that", async () => {
    const notified: string[] = [];
    const t = await start({
      run: "elsewhere",
      notifyWorker: async (eventId) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        notified.push(eventId);
      },
    });
    const { eventId } = await t.receiver.payments.ingest(lookup("a"));
    expect(notified).toEqual([eventId]);
    await t.receiver.close();
  });

  it("is not called for events that run in this process", async () => {
    const notified: string[] = [];
    const t = await start({ notifyWorker: (eventId) => void notified.push(eventId) });
    await t.send("a");
    expect([notified, t.ran]).toEqual([[], ["a"]]);
    await t.receiver.close();
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no queue");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no queue"))],
  ])("loses nothing when it %s: the event is stored, and found by work", async (_, notifyWorker) => {
    const t = await start({ run: "elsewhere", notifyWorker });
    expect(await t.send("a")).toBe(200);
    await settle();
    expect(t.notices).toContainEqual(
      expect.objectContaining({ type: "inbox-error", during: "notifyWorker" }),
    );
    await t.receiver.work();
    expect(t.ran).toEqual(["a"]);
    await t.receiver.close();
  });

  it("holds up no platform if it never settles: the event is stored, and work finds it", async () => {
    const t = await start({ run: "elsewhere", notifyWorker: () => new Promise(() => {}) });
    const fields = callbackFields({ payTxnId: "a" }, t.clock.now());
    const waits: Promise<unknown>[] = [];
    const { status } = await t.receiver.payments.receive({
      ...deliveryOf(signPaymentCallback(fields, keys.privateKey)),
      waitUntil: (work) => waits.push(work),
    });
    expect([status, waits.length]).toEqual([200, 1]);
    const ingested = t.receiver.payments.ingest(lookup("b"));
    await settle();
    await t.clock.advance(2_000);
    await Promise.all([...waits, ingested]);
    const error = expect.stringContaining("acceptTimeoutMs");
    expect(t.notices).toContainEqual(
      expect.objectContaining({ type: "inbox-error", during: "notifyWorker", error }),
    );
    await t.receiver.work();
    expect(t.ran.sort()).toEqual(["a", "b"]);
    await t.receiver.close();
  });

  it("has to be a function", () => {
    const options = { payments: { publicKey: keys.publicKey }, notifyWorker: "queue" as never };
    expect(() => createReceiver(options)).toThrow(
      expect.objectContaining({
        code: "ERR_OPTION_INVALID",
        message: expect.stringContaining("notifyWorker"),
      }),
    );
  });
});

describe("run", () => {
  it("refuses a text that is not an eventId, and says what one is", async () => {
    const t = await start();
    const error = await rejectedBy(t.receiver.run("job-1"));
    expect(isPayhooksError(error) && error.code).toBe("ERR_OPTION_INVALID");
    expect(error.message).toContain("48 hex digits");
    await t.receiver.close();
  });

  it("returns that there is no record of an event", async () => {
    const t = await start();
    expect(await t.receiver.run("0".repeat(48))).toEqual({ state: null, ran: false });
    await settle();
    expect(t.eventId("record-missing")).toBe("0".repeat(48));
    await t.receiver.close();
  });
});

describe("after the response", () => {
  it("a SUCCESS that arrived while its PENDING ran is run once the PENDING has ended, without a further request", async () => {
    const clock = fakeClock();
    let release = (): void => {};
    const gate = new Promise<void>((open) => {
      release = open;
    });
    const ran: string[] = [];
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox: memoryInbox({ clock }),
      clock,
      run: "after-response",
      logger: silent,
    });
    receiver.onDeposit({
      PENDING: () => gate.then(() => void ran.push("PENDING")),
      SUCCESS: () => void ran.push("SUCCESS"),
    });
    await receiver.start();
    const work: Promise<unknown>[] = [];
    const send = async (status: "PENDING" | "SUCCESS") => {
      const fields = callbackFields({ payTxnId: "t", referenceId: "o", status }, clock.now());
      const delivery = deliveryOf(signPaymentCallback(fields, keys.privateKey));
      const reply = await receiver.payments.receive({ ...delivery, waitUntil: (w) => work.push(w) });
      await settle();
      return reply.status;
    };
    expect([await send("PENDING"), await send("SUCCESS")]).toEqual([200, 200]);
    expect(ran).toEqual([]);
    release();
    await Promise.all(work);
    expect(ran).toEqual(["PENDING", "SUCCESS"]);
    await receiver.close({ graceMs: 0 });
  });

  it("a SUCCESS that is stored while its PENDING is being stored is run at once, without a further request", async () => {
    const clock = fakeClock();
    const memory = memoryStore({ clock });
    let release = (): void => {};
    const gate = new Promise<void>((open) => {
      release = open;
    });
    const inbox = createInbox({
      ...memory,
      immediate: false,
      swap: async (items) => {
        await gate;
        return memory.swap(items);
      },
    });
    const ran: string[] = [];
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox,
      clock,
      run: "after-response",
      logger: silent,
    });
    receiver.onDeposit({
      PENDING: () => void ran.push("PENDING"),
      SUCCESS: () => void ran.push("SUCCESS"),
    });
    await receiver.start();
    const work: Promise<unknown>[] = [];
    const replies = (["PENDING", "SUCCESS"] as const).map((status) => {
      const fields = callbackFields({ payTxnId: "t", referenceId: "o", status }, clock.now());
      const delivery = deliveryOf(signPaymentCallback(fields, keys.privateKey));
      return receiver.payments.receive({ ...delivery, waitUntil: (w) => work.push(w) });
    });
    await settle();
    release();
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200]);
    await Promise.all(work);
    // The PENDING was stale before it ran.
    expect(ran).toEqual(["SUCCESS"]);
    await receiver.close({ graceMs: 0 });
  });

  it('with ack: "handled", the first copy after a failure is tried at once', async () => {
    const clock = fakeClock();
    let attempts = 0;
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox: memoryInbox({ clock }),
      clock,
      ack: "handled",
      logger: silent,
    });
    receiver.onDeposit(() => {
      if (++attempts === 1) throw new Error("not yet");
    });
    await receiver.start();
    const fields = callbackFields({ payTxnId: "t", referenceId: "o" }, clock.now());
    const delivery = { ...deliveryOf(signPaymentCallback(fields, keys.privateKey)), waitUntil: () => {} };
    expect((await receiver.payments.receive(delivery)).status).toBe(503);
    expect((await receiver.payments.receive(delivery)).status).toBe(200);
    expect(attempts).toBe(2);
    await receiver.close({ graceMs: 0 });
  });
});

describe("a backoffMs that throws", () => {
  it("is replaced by the default, and does not look like the death of a handler", async () => {
    const clock = fakeClock();
    const notices: Notice[] = [];
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox: memoryInbox({ clock }),
      clock,
      logger: silent,
    });
    let attempts = 0;
    const backoffMs = (): number => {
      throw new TypeError("no such delay");
    };
    receiver
      .onDeposit(
        () => {
          if (++attempts === 1) throw new Error("not yet");
        },
        { backoffMs, onCrash: "hold" },
      )
      .observe((notice) => notices.push(notice));
    await receiver.start();
    const fields = callbackFields({}, clock.now());
    await receiver.payments.receive(deliveryOf(signPaymentCallback(fields, keys.privateKey)));
    await clock.advance("1m");
    expect(attempts).toBe(2);
    expect(notices.map(({ type }) => type).filter((type) => type !== "warning")).toEqual([
      "accepted",
      "started",
      "retry",
      "started",
      "done",
      "finished",
    ]);
    await receiver.close();
  });
});
