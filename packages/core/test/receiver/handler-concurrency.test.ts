/** A handler with a limit of its own: how many of its calls are open at one time, and what becomes of the events that wait. */
import { createReceiver, type HandlerOptions, memoryInbox, type Notice, type Receiver } from "@payhooks/core";
import {
  callbackFields,
  createTestKeys,
  type FakeClock,
  fakeClock,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import type { Inbox } from "../../src/inbox/contract/inbox.ts";
import { createInbox } from "../../src/inbox/engine.ts";
import { memoryStore } from "../../src/memory/store.ts";
import { settle } from "../../src/testing/clock.ts";
import { deliveryOf } from "../receiving.ts";

const keys = createTestKeys();

/** A receiver with four places. A deposit takes a while, and a withdrawal no time. */
class ReceiverFixture {
  readonly clock: FakeClock;
  readonly receiver: Receiver;
  readonly notices: Notice[] = [];
  /** The deposits whose handler was called, each with its attempt. */
  readonly called: string[] = [];
  readonly withdrawn: string[] = [];
  /** The most calls for deposits that were open at one time. */
  most = 0;
  #open = 0;

  constructor(
    options: HandlerOptions,
    { clock = fakeClock(), takesMs = 1_000, inbox = memoryInbox({ clock }) as Inbox } = {},
  ) {
    this.clock = clock;
    this.receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox,
      clock,
      concurrency: 4,
      logger: silent,
    });
    this.receiver
      .onDeposit(async ({ payTxnId }, { attempt }) => {
        this.called.push(`${payTxnId} ${attempt}`);
        this.most = Math.max(this.most, ++this.#open);
        await new Promise<void>((resolve) => void clock.after(takesMs, resolve));
        this.#open--;
      }, options)
      .onWithdrawal(({ payTxnId }) => void this.withdrawn.push(payTxnId))
      .observe((notice) => void this.notices.push(notice));
  }

  async send(event: "DEPOSIT" | "WITHDRAWAL", ids: readonly string[]): Promise<void> {
    for (const payTxnId of ids) {
      const fields = callbackFields({ event, payTxnId, referenceId: `order-${payTxnId}` }, this.clock.now());
      const signed = signPaymentCallback(fields, keys.privateKey);
      expect((await this.receiver.payments.receive(deliveryOf(signed))).status).toBe(200);
      await settle();
    }
  }

  /** Closes the receiver, however long its handlers would still run. */
  async end(): Promise<void> {
    const closing = this.receiver.close({ graceMs: 0 });
    await this.clock.advance(1);
    await closing;
  }

  of(type: Notice["type"]): readonly Notice[] {
    return this.notices.filter((notice) => notice.type === type);
  }
}

const numbered = (count: number, prefix = "d"): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`);

it("a handler has at most as many calls at a time as its concurrency says, in the order of the events", async () => {
  const fixture = new ReceiverFixture({ concurrency: 2 });
  await fixture.receiver.start();
  await fixture.send("DEPOSIT", numbered(8));
  expect(fixture.called).toEqual(["d0 1", "d1 1"]);
  await fixture.clock.advance("5s");
  expect(fixture.called).toEqual(numbered(8).map((id) => `${id} 1`));
  expect(fixture.most).toBe(2);
  expect(fixture.of("finished")).toHaveLength(8);
  expect([...fixture.of("retry"), ...fixture.of("double-risk")]).toEqual([]);
  await fixture.receiver.close();
});

it("an event that waits for a busy handler leaves its place to events of other handlers", async () => {
  const fixture = new ReceiverFixture({ concurrency: 1 }, { takesMs: 10_000 });
  await fixture.receiver.start();
  // More than the receiver has places.
  await fixture.send("DEPOSIT", numbered(6));
  await fixture.send("WITHDRAWAL", numbered(6, "w"));
  expect(fixture.withdrawn).toEqual(numbered(6, "w"));
  expect(fixture.called).toEqual(["d0 1"]);
  await fixture.end();
});

it("without a concurrency, the events of a slow handler take every place", async () => {
  const fixture = new ReceiverFixture({}, { takesMs: 10_000 });
  await fixture.receiver.start();
  await fixture.send("DEPOSIT", numbered(6));
  await fixture.send("WITHDRAWAL", numbered(6, "w"));
  expect(fixture.withdrawn).toEqual([]);
  expect(fixture.most).toBe(4);
  await fixture.end();
});

it("events that would wait long for a handler are put off, and their handler is called once for each in the end", async () => {
  const fixture = new ReceiverFixture({ concurrency: 1 }, { takesMs: 2_000 });
  await fixture.receiver.start();
  await fixture.send("DEPOSIT", numbered(40));
  // A few wait in the process, each with its lease. The others are in the inbox.
  const { running, waiting, retrying } = await fixture.receiver.health();
  expect(running).toBeLessThanOrEqual(6);
  expect(Number(waiting) + Number(retrying)).toBeGreaterThanOrEqual(34);
  await fixture.clock.advance("120s");
  expect(fixture.called.toSorted()).toEqual(
    numbered(40)
      .map((id) => `${id} 1`)
      .toSorted(),
  );
  expect(fixture.most).toBe(1);
  expect([...fixture.of("retry"), ...fixture.of("double-risk")]).toEqual([]);
  await fixture.receiver.close();
});

it("an event that waits for a busy handler is written only with the ends of its earlier handlers", async () => {
  const fixture = new ReceiverFixture({ concurrency: 1 }, { takesMs: 10_000 });
  const first: string[] = [];
  fixture.receiver
    .onWithdrawal(({ payTxnId }) => void first.push(payTxnId), { name: "before" })
    .onWithdrawal(
      async () => {
        await new Promise<void>((resolve) => void fixture.clock.after(10_000, resolve));
      },
      { name: "limited", concurrency: 1 },
    );
  await fixture.receiver.start();
  await fixture.send("DEPOSIT", ["d0", "d1"]);
  await fixture.send("WITHDRAWAL", ["w0", "w1"]);
  const stateOf = async (id: string): Promise<unknown> => {
    const { events } = await fixture.receiver.events.list({ state: "running" });
    const eventId = events.find((event) => event.id === id)?.eventId ?? "";
    const handlers = (await fixture.receiver.events.get(eventId))?.handlers ?? {};
    return Object.fromEntries(Object.entries(handlers).map(([name, { state }]) => [name, state]));
  };
  expect(await stateOf("d0")).toEqual({ deposit: "started" });
  expect(await stateOf("d1")).toEqual({});
  expect(await stateOf("w0")).toEqual({ withdrawal: "done", before: "done", limited: "started" });
  expect(await stateOf("w1")).toEqual({ withdrawal: "done", before: "done" });
  expect(first).toEqual(["w0", "w1"]);
  await fixture.end();
});

it("a close hands back the events that wait for a handler, without an attempt", async () => {
  const clock = fakeClock();
  const store = { ...memoryStore({ clock }), endsWithProcess: false, close: async () => {} };
  const shopOn = (): ReceiverFixture =>
    new ReceiverFixture({ concurrency: 1 }, { clock, inbox: createInbox(store, { clock }) });
  const one = shopOn();
  await one.receiver.start();
  await one.send("DEPOSIT", numbered(4));
  const closing = one.receiver.close();
  await clock.advance("1s");
  expect(await closing).toEqual({ unfinished: 0 });
  expect(one.called).toEqual(["d0 1"]);
  const other = shopOn();
  await other.receiver.start();
  await clock.advance("4s");
  expect(other.called).toEqual(["d1 1", "d2 1", "d3 1"]);
  expect([...one.of("double-risk"), ...other.of("double-risk")]).toEqual([]);
  await other.receiver.close();
});

it("an event that comes to a busy handler after the close has begun is handed back at once", async () => {
  const clock = fakeClock();
  const store = { ...memoryStore({ clock }), endsWithProcess: false, close: async () => {} };
  const inbox = createInbox(store, { clock });
  const fixture = new ReceiverFixture({}, { clock, inbox });
  const wait = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  const limited: string[] = [];
  fixture.receiver
    .onWithdrawal(({ payTxnId }) => wait(payTxnId === "w1" ? 2_000 : 0), { name: "before" })
    .onWithdrawal(
      async ({ payTxnId }) => {
        limited.push(payTxnId);
        await wait(600_000);
      },
      { name: "limited", concurrency: 1 },
    );
  await fixture.receiver.start();
  await fixture.send("WITHDRAWAL", ["w0", "w1"]);
  await clock.advance("1s");
  const closing = fixture.receiver.close({ graceMs: 5_000 });
  await clock.advance("6s");
  expect(await closing).toEqual({ unfinished: 1 });
  expect(limited).toEqual(["w0"]);
  expect(fixture.of("double-risk")).toMatchObject([{ why: "closed-while-running", id: "w0" }]);
});

it("a close of an inbox that ends with its process calls the handler of each waiting event, one after the other", async () => {
  const fixture = new ReceiverFixture({ concurrency: 1 });
  await fixture.receiver.start();
  await fixture.send("DEPOSIT", numbered(12));
  const closing = fixture.receiver.close({ graceMs: 60_000 });
  await fixture.clock.advance("20s");
  expect(await closing).toEqual({ unfinished: 0 });
  expect(fixture.called).toHaveLength(12);
  expect(fixture.most).toBe(1);
});

it("a call past its timeoutMs counts for the concurrency until it ends, and a notice says that no further call is made", async () => {
  const fixture = new ReceiverFixture(
    { concurrency: 1, timeoutMs: 1_000, maxAttempts: 1 },
    { takesMs: 60_000 },
  );
  await fixture.receiver.start();
  await fixture.send("DEPOSIT", ["d0", "d1"]);
  await fixture.clock.advance("50s");
  expect(fixture.called).toEqual(["d0 1"]);
  expect(fixture.of("warning").map((notice) => notice.type === "warning" && notice.what)).toEqual([
    "All calls that the concurrency of the handler deposit allows are past its timeoutMs and have not ended. It is not called before one of them ends.",
  ]);
  await fixture.clock.advance("11s");
  expect(fixture.called).toEqual(["d0 1", "d1 1"]);
  expect(fixture.most).toBe(1);
  await fixture.end();
});

it('with onTimeout: "rerun", a call past its timeoutMs does not count for the concurrency', async () => {
  const options: HandlerOptions = { concurrency: 1, timeoutMs: 1_000, maxAttempts: 1, onTimeout: "rerun" };
  const fixture = new ReceiverFixture(options, { takesMs: 60_000 });
  await fixture.receiver.start();
  await fixture.send("DEPOSIT", ["d0", "d1"]);
  await fixture.clock.advance("2s");
  expect(fixture.called).toEqual(["d0 1", "d1 1"]);
  expect(fixture.of("warning")).toEqual([]);
  await fixture.end();
});

it.each([0, 1.5, "2"])("a concurrency of %s is refused", (concurrency) => {
  const receiver = createReceiver({ payments: { publicKey: keys.publicKey }, logger: silent });
  expect(() => receiver.onDeposit(() => {}, { concurrency: concurrency as number })).toThrow(
    expect.objectContaining({ code: "ERR_OPTION_INVALID" }),
  );
});

it("a call that waited while the store was away for a whole lease is made by the next run, with a signal that is not aborted", async () => {
  const clock = fakeClock();
  const memory = memoryStore({ clock });
  let isAway = false;
  const call = <T>(make: () => T): T => {
    if (isAway) throw new Error("the store is away");
    return make();
  };
  const inbox = createInbox(
    {
      ...memory,
      immediate: false,
      read: async (recordKeys) => call(() => memory.read(recordKeys)),
      swap: async (items) => call(() => memory.swap(items)),
      takeDue: async (limit, hideMs) => call(() => memory.takeDue(limit, hideMs)),
    },
    { clock, leaseMs: 9_000 },
  );
  const calls: string[] = [];
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox,
    clock,
    concurrency: 4,
    logger: silent,
  });
  receiver.onDeposit(
    async ({ payTxnId }, { attempt, signal }) => {
      calls.push(`${payTxnId} ${attempt} ${signal.aborted ? "aborted" : "in time"}`);
      if (payTxnId === "a") await new Promise<void>((resolve) => void clock.after(20_000, resolve));
    },
    { concurrency: 1 },
  );
  await receiver.start();
  for (const payTxnId of ["a", "b"]) {
    const fields = callbackFields({ payTxnId, referenceId: `order-${payTxnId}` }, clock.now());
    const signed = signPaymentCallback(fields, keys.privateKey);
    expect((await receiver.payments.receive(deliveryOf(signed))).status).toBe(200);
    await settle();
  }
  await clock.advance("1s");
  isAway = true;
  await clock.advance("14s");
  isAway = false;
  await clock.advance("1m");
  expect(calls).toEqual(["a 1 in time", "b 1 in time"]);
  await receiver.close({ graceMs: 0 });
});
