import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, memoryInbox, type Receiver, type ReceiverOptions, Reject } from "@payhooks/core";
import { type Explanation, explain } from "@payhooks/core/events";
import { sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  type FakeClock,
  fakeClock,
  resplitPair,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { removeFolder } from "../../../../test/support/remove-folder.ts";
import { silent } from "../../../../test/support/silent.ts";

const keys = createTestKeys();

interface ReceiverFixture {
  readonly receiver: Receiver;
  readonly clock: FakeClock;
  /** The handler's error; null: it succeeds. */
  throws: Error | null;
  deliver(fields?: Parameters<typeof callbackFields>[0]): Promise<void>;
  raw(sent: ReturnType<typeof signPaymentCallback>): Promise<void>;
  /** Explains the one event of a reference. */
  explained(referenceId: string): Promise<Explanation>;
}

/** A receiver on a SQLite file, whose deposits have two attempts. */
async function receiverFixture(options: Partial<ReceiverOptions> = {}): Promise<ReceiverFixture> {
  const folder = mkdtempSync(join(tmpdir(), "payhooks-explain-"));
  const clock = fakeClock();
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: sqliteInbox(join(folder, "inbox.db"), { clock }),
    clock,
    run: "after-response",
    logger: silent,
    ...options,
  });
  const one: ReceiverFixture = {
    receiver,
    clock,
    throws: null,
    deliver: (fields) => one.raw(signPaymentCallback(callbackFields(fields, clock.now()), keys.privateKey)),
    async raw({ headers, rawBody }) {
      const work: Promise<unknown>[] = [];
      const reply = await receiver.payments.receive({
        method: "POST",
        url: "/",
        headers: new Headers(headers),
        rawBody,
        waitUntil: (promise) => work.push(promise),
      });
      expect(reply.status).toBe(200);
      await Promise.all(work);
    },
    async explained(referenceId) {
      const { events } = await receiver.events.list({ referenceId });
      expect(events).toHaveLength(1);
      const [event] = events;
      if (event === undefined) throw new Error("there is no such event");
      return explain(event, clock.now());
    },
  };
  const handler = (): void => {
    if (one.throws !== null) throw one.throws;
  };
  receiver.onDeposit(
    { PENDING: handler, SUCCESS: handler },
    { name: "credit", maxAttempts: 2, backoffMs: () => 600_000 },
  );
  await receiver.start();
  onTestFinished(async () => {
    await receiver.close({ graceMs: 0 });
    removeFolder(folder);
  });
  return one;
}

const wordsOf = ({ past, ...rest }: Explanation): string =>
  [...past.map(({ text }) => text), ...Object.values(rest).flat()].join("\n");

describe("the explanation of an event", () => {
  it("says how it arrived, how it was read, and that it is done", async () => {
    const one = await receiverFixture();
    await one.deliver({ referenceId: "order-1", amount: "10.500000" });
    const { past, now, handlers, decisions } = await one.explained("order-1");
    expect(past).toEqual([
      {
        at: one.clock.now(),
        text: expect.stringMatching(
          /^It arrived in the flow payments, and was accepted\. It was read as DEPOSIT SUCCESS, amount 10\.500000, reference order-1, id [\w-]+\.$/,
        ),
      },
    ]);
    expect({ now, handlers, decisions }).toEqual({
      now: ["It is done: every handler that wanted it has finished."],
      handlers: [],
      decisions: [],
    });
  });

  it("says what failed, and when it is tried again", async () => {
    const one = await receiverFixture();
    one.throws = new Error("the bank is down");
    await one.deliver({ referenceId: "order-1" });
    const { past, now, handlers, next, decisions } = await one.explained("order-1");
    expect(past[0]?.text).toMatch(
      /^A callback arrived in the flow payments, verified with the key [0-9a-f]{16}, /,
    );
    expect(past[1]?.text).toBe("The handler credit failed at attempt 1. It threw: Error: the bank is down");
    expect(now).toEqual(["It waits for handlers that have not finished."]);
    const due = new Date(one.clock.now() + 600_000).toISOString();
    expect(handlers).toEqual([
      `The handler credit has failed: 1 attempt so far. It is due at ${due}, in 10 min.`,
    ]);
    expect(next[0]).toBe(`A process that runs events tries again at ${due}, in 10 min, or a little later.`);
    expect(decisions).toEqual(["retry"]);
    await one.clock.advance(600_000);
    expect((await one.explained("order-1")).next[0]).toMatch(/^It is due:/);
  });

  it("says why it is held, what a person can do, and who has decided", async () => {
    const one = await receiverFixture();
    one.throws = new Reject("no such order");
    await one.deliver({ referenceId: "order-1" });
    const held = await one.explained("order-1");
    expect(held.now).toEqual([
      expect.stringMatching(/^It is held for a person since \S+Z, 0 s ago\. A handler has rejected it\.$/),
    ]);
    expect(held.handlers).toEqual(["The handler credit is not tried again by itself, after 1 attempt."]);
    expect(held.advice).toEqual([
      "Decide whether the handler was right. Replay it once the cause is gone, or discard it.",
    ]);
    expect(held.decisions).toEqual(["replay", "discard"]);
    const { events } = await one.receiver.events.list({ referenceId: "order-1" });
    await one.receiver.events.replay(events[0]?.eventId ?? "", {
      by: "amina",
      note: "the order is there now",
    });
    const waiting = await one.explained("order-1");
    expect(waiting.now).toEqual(["It waits for its run after replay 1."]);
    await one.clock.advance(120_000);
    expect((await one.explained("order-1")).now).toContain("It has waited for 2 min, which is unusual.");
    one.throws = null;
    await one.receiver.work();
    expect((await one.explained("order-1")).past.map(({ text }) => text).slice(1)).toEqual([
      "The handler credit was given up as rejected, at attempt 1. It threw: Reject: no such order",
      "It was put on hold as rejected: A handler has rejected it.",
      "amina replayed it. Note: the order is there now",
      "All its handlers had finished.",
    ]);
  });

  it("says of a contradiction that another event has run, and of a discarded one that it never runs", async () => {
    const one = await receiverFixture();
    await one.deliver({ referenceId: "order-1", payTxnId: "pay-1", amount: "10.000000" });
    await one.deliver({ referenceId: "order-1", payTxnId: "pay-1", amount: "99.000000" });
    const { events } = await one.receiver.events.list({ state: "held" });
    const [event] = events;
    if (event === undefined) throw new Error("nothing is held");
    const { now, advice } = explain(event, one.clock.now());
    expect(now[0]).toContain("The same event is recorded with other facts, such as another amount.");
    expect(advice).toEqual([
      "Another event of its transaction has run, or will. A replay runs a second one.",
      expect.stringMatching(/^Ask the service which of the two is true\./),
    ]);
    await one.receiver.events.discard(event.eventId, { by: "amina", note: "the bank says 10" });
    const after = await one.receiver.events.get(event.eventId);
    if (after === null) throw new Error("it is gone");
    const told = explain(after, one.clock.now());
    expect(told.past.at(-1)?.text).toBe("amina discarded it. Note: the bank says 10");
    expect(told.now).toEqual(["A person has discarded it. Its handlers do not run."]);
  });

  it("says of an ambiguous event that nothing certain could be read", async () => {
    const one = await receiverFixture();
    await one.raw(resplitPair("order-2", keys.privateKey).forged);
    const { events } = await one.receiver.events.list({ state: "held" });
    const [event] = events;
    if (event === undefined) throw new Error("nothing is held");
    const words = wordsOf(explain(event, one.clock.now()));
    expect(words).toContain("No event could be read from it with certainty.");
    expect(words).toContain("Its signature fits more than one event");
  });

  it("says that a PENDING was overtaken, and which event waits for the end of a run", async () => {
    const one = await receiverFixture();
    one.throws = new Error("the bank is down");
    const sent = { referenceId: "order-1", payTxnId: "pay-1" };
    await one.deliver({ ...sent, status: "PENDING" });
    one.throws = null;
    await one.deliver({ ...sent, status: "SUCCESS" });
    const { events } = await one.receiver.events.list({ referenceId: "order-1" });
    const states = events.map((event) => [event.state, explain(event, one.clock.now()).now[0]]);
    expect(Object.fromEntries(states)).toMatchObject({
      stale: expect.stringMatching(/^A later event had overtaken it/),
    });
  });

  it("has values of the delivery and errors of handlers in its past only", async () => {
    const one = await receiverFixture();
    one.throws = new Error("order-1 of Amina failed");
    await one.deliver({ referenceId: "order-1", payTxnId: "pay-1" });
    const { past, ...rest } = await one.explained("order-1");
    expect(JSON.stringify(past)).toContain("Amina");
    expect(JSON.stringify(rest)).not.toMatch(/Amina|order-1|pay-1|DEPOSIT/);
  });
});

describe("the order of a subject", () => {
  it("has the event that was asked about, and the latest 20 others", async () => {
    const secret = "whsec_0123456789abcdef";
    const clock = fakeClock();
    const receiver = createReceiver({
      connect: { secret },
      inbox: memoryInbox({ clock }),
      clock,
      run: "elsewhere",
      logger: silent,
    });
    onTestFinished(async () => {
      await receiver.close({ graceMs: 0 });
    });
    const declined = connectEvent("connected_account.declined");
    const decline = async (): Promise<void> => {
      const occurred_at = new Date(clock.now()).toISOString();
      const { rawBody, headers } = signConnectWebhook(
        { ...declined, idempotency_key: occurred_at, occurred_at },
        secret,
      );
      const request = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
      expect((await receiver.connect.receive(request)).status).toBe(200);
    };
    for (let sent = 0; sent < 22; sent++) {
      await decline();
      await clock.advance(1);
    }
    const { events: listed } = await receiver.events.list({ limit: 100 });
    const ids = listed.map(({ eventId }) => eventId);
    expect(ids).toHaveLength(22);
    const orderOf = async (asked: number) => {
      const order = await receiver.events.subjectOrder(ids[asked] ?? "");
      return order === null
        ? null
        : { ...order, events: order.events.map(({ eventId }) => ids.indexOf(eventId)) };
    };
    const latest = (count: number): readonly number[] => [...ids.keys()].slice(-count);
    expect(await orderOf(0)).toEqual({ events: [0, ...latest(20)], complete: false });
    expect(await orderOf(1)).toEqual({ events: latest(21), complete: false });
    expect(await orderOf(21)).toEqual({ events: latest(21), complete: false });
  });
});
