/** Tests in which context of `AsyncLocalStorage` merchant's code runs, and for how long Payhooks keeps one. */
import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  createReceiver,
  type Inbox,
  type Logger,
  memoryInbox,
  type Receiver,
  type ReceiverOptions,
  Reject,
  RetryAfter,
} from "@payhooks/core";
import { effects } from "@payhooks/core/effects";
import { paymentCallbacks } from "@payhooks/core/fetch";
import { sqliteInbox } from "@payhooks/core/sqlite";
import {
  callbackFields,
  connectEvent,
  createTestKeys,
  fakeClock,
  type SignedDelivery,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { sharedReceiver } from "../../src/http/shared-receiver.ts";
import { deliveryOf, SECRET } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();

interface Request {
  readonly name: string;
}
const requests = new AsyncLocalStorage<Request>();
const EMPTY = "none";
const here = (): string => requests.getStore()?.name ?? EMPTY;

const inboxes: readonly (readonly [string, () => Inbox])[] = [
  ["memory", () => memoryInbox()],
  [
    "SQLite",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "payhooks-contexts-"));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      return sqliteInbox(join(folder, "inbox.db"));
    },
  ],
];

/** A receiver that is closed with its test. */
function receiverOn(inbox: Inbox, options: Partial<ReceiverOptions> = {}): Receiver {
  const receiver = createReceiver({ payments: { publicKey }, logger: silent, ...options, inbox });
  onTestFinished(() => void receiver.close({ graceMs: 0 }));
  return receiver.ignore("WITHDRAWAL");
}

/** Delivers in a request of its own. */
async function deliver(receiver: Receiver, name: string, sent: SignedDelivery): Promise<void> {
  await requests.run({ name }, async () => {
    const flow = "x-connect-signature" in sent.headers ? receiver.connect : receiver.payments;
    const work: Promise<unknown>[] = [];
    const waitUntil = (one: Promise<unknown>): unknown => work.push(one);
    await flow.receive({ ...deliveryOf(sent), waitUntil }, { mounted: true });
    expect(here()).toBe(name);
    await Promise.all(work);
  });
}

const deposit = (referenceId: string): SignedDelivery =>
  signPaymentCallback(callbackFields({ referenceId }), privateKey);

const NAMES = ["one", "two", "three", "four"];

describe.each(inboxes)("on %s, a request's context", (_, makeInbox) => {
  it("reaches a handler that runs before or after the answer, and everything that the handler calls", async () => {
    for (const options of [{ ack: "handled" }, { run: "after-response" }, { run: "background" }] as const) {
      const seen: string[] = [];
      const call = (what: string): void => void seen.push(`${what} in ${here()}`);
      const logger: Logger = { ...silent, info: (message) => call(message) };
      const client = effects({
        async transaction(work) {
          call("transaction");
          return work("tx");
        },
        async insert() {
          call("insert");
          return { found: "nothing" };
        },
        async finish() {
          call("finish");
          return true;
        },
      });
      const receiver = receiverOn(makeInbox(), {
        ...options,
        logger,
        logLevel: "error",
        effects: client,
      });
      receiver.onDeposit(async ({ referenceId }, ctx) => {
        await (ctx as unknown as { transaction(fn: () => unknown): Promise<unknown> }).transaction(async () =>
          call("effect"),
        );
        ctx.log.info(`handler of ${referenceId}`);
      });
      await Promise.all(NAMES.map((name) => deliver(receiver, name, deposit(name))));
      const kinds = ["transaction", "insert", "effect", "finish"];
      const expected = NAMES.flatMap((name) =>
        [...kinds, `handler of ${name}`].map((kind) => `${kind} in ${name}`),
      );
      await expect.poll(() => [...seen].sort()).toEqual(expected.sort());
    }
  });

  it("does not reach a later attempt, an onHeld handler, an observer, or a logger", async () => {
    const seen = new Set<string>();
    const call = (what: string): void => void seen.add(`${what} in ${here()}`);
    const log = (message: string): void => call(`log ${message.split(":")[0]}`);
    const receiver = receiverOn(makeInbox(), {
      // After the response, only what is due by then is run.
      run: "background",
      logger: { info: log, warn: log, error: log },
      concurrency: 50,
    });
    receiver.observe(({ type }) => {
      call(`observe ${type}`);
      // Only on Node before 24 could others find this.
      requests.enterWith({ name: "an observer" });
    });
    receiver.onDeposit(
      (_event, { attempt }) => {
        if (attempt === 1) throw new Error("once more");
        call(`attempt ${attempt}`);
        requests.enterWith({ name: "a handler" });
        if (attempt === 2) throw new RetryAfter(1);
        throw new Reject("no");
      },
      {
        backoffMs(attempt) {
          call(`backoff ${attempt}`);
          return 1;
        },
      },
    );
    receiver.onHeld(() => call("onHeld"));
    await Promise.all(NAMES.map((name) => deliver(receiver, name, deposit(name))));
    const quiet = ["accepted", "started", "retry", "given-up", "held", "warning"];
    const expected = [
      ...["attempt 2", "attempt 3", "onHeld", "log retry", "log given-up", "log held"],
      ...quiet.filter((type) => type !== "warning").map((type) => `observe ${type}`),
    ].map((what) => `${what} in ${EMPTY}`);
    await expect.poll(() => [...seen]).toEqual(expect.arrayContaining(expected));
    const others = [...seen].filter((line) => !line.endsWith(` in ${EMPTY}`));
    expect(others.sort()).toEqual(NAMES.map((name) => `backoff 1 in ${name}`).sort());
  });

  it("does not reach the handler of an event that a look-up brings", async () => {
    const seen: string[] = [];
    const receiver = receiverOn(makeInbox(), { payments: { publicKey }, run: "elsewhere" });
    receiver.onDeposit(({ referenceId }) => void seen.push(`${referenceId} in ${here()}`));
    const transaction = {
      id: "tx-1",
      reference: "looked up",
      type: "DEPOSIT",
      status: "SUCCESS",
      base_amount: "10.00",
      callback_url: "https://merchant.example/pay",
      updated_at: new Date().toISOString(),
    };
    await requests.run({ name: "two" }, async () => {
      await receiver.payments.ingest(transaction);
      await receiver.work();
    });
    expect(seen).toEqual([`looked up in ${EMPTY}`]);
  });

  it("does not reach a resolver, whose answer other requests share", async () => {
    const seen: string[] = [];
    const resolve =
      <Key>(keys: Key) =>
      async () => {
        seen.push(here());
        return { tenant: "shop", keys };
      };
    const receiver = receiverOn(makeInbox(), {
      payments: { publicKey: resolve(publicKey) },
      connect: { secret: resolve(SECRET) },
    });
    receiver.onDeposit(() => {}).onSettlementApproved(() => {});
    for (const event of [
      "settlement.declined",
      "connected_account.approved",
      "connected_account.declined",
    ] as const)
      receiver.ignore(event);
    await deliver(receiver, "one", deposit("one"));
    await deliver(receiver, "two", signConnectWebhook(connectEvent(), SECRET));
    expect(seen).toEqual([EMPTY, EMPTY]);
  });

  it("reaches notifyWorker", async () => {
    const seen: string[] = [];
    const receiver = receiverOn(makeInbox(), {
      run: "elsewhere",
      notifyWorker: async () => void seen.push(here()),
    });
    await Promise.all(NAMES.map((name) => deliver(receiver, name, deposit(name))));
    expect(seen.sort()).toEqual([...NAMES].sort());
  });

  it("is collected once the request is over, while the receiver waits", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const kept: WeakRef<Request>[] = [];
    const receiver = receiverOn(makeInbox(), { concurrency: 50 });
    let handled = 0;
    receiver.onDeposit(
      () => {
        if (++handled % 2 === 0) throw new Error("in an hour");
      },
      { backoffMs: () => 3_600_000 },
    );
    receiver.observe(() => {});
    // The first request also starts the receiver, and opens the inbox.
    for (let at = 0; at < 40; at++) {
      const sent = deposit(`order-${at}`);
      await (async () => {
        const request = { name: `request ${at}` };
        kept.push(new WeakRef(request));
        await requests.run(request, async () => {
          await receiver.payments.receive(deliveryOf(sent), { mounted: true });
          await receiver.ready();
        });
      })();
    }
    await expect.poll(() => handled).toBe(40);
    await expect
      .poll(() => {
        collect();
        return kept.filter((one) => one.deref() !== undefined).map((one) => one.deref()?.name);
      })
      .toEqual([]);
  });
});

describe("a receiver that is made during a request", () => {
  it("runs nothing in the context of that request", async () => {
    const seen: string[] = [];
    const make = (): Receiver => {
      seen.push(`made in ${here()}`);
      const clock = fakeClock();
      const receiver = receiverOn(memoryInbox({ clock }), { clock });
      receiver.observe(() => seen.push(`observed in ${here()}`));
      return receiver.onDeposit(() => {});
    };
    const sent = deposit("one");
    const request = (): globalThis.Request =>
      new Request("https://merchant.example/pay", {
        method: "POST",
        headers: sent.headers,
        body: new Uint8Array(sent.rawBody),
      });
    for (const source of [make, sharedReceiver(make, "contexts")]) {
      const mounted = paymentCallbacks(source);
      const { status } = await requests.run({ name: "first" }, () => mounted(request()));
      expect(status).toBe(200);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(new Set(seen)).toEqual(new Set([`made in ${EMPTY}`, `observed in ${EMPTY}`]));
  });
});
