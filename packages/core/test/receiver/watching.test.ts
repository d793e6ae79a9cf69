/** A receiver starts until it runs, and says what keeps it from that; a reason outlives the deadline that ends the attempts. */
import {
  createReceiver,
  type Instrumentation,
  memoryInbox,
  type Notice,
  PayhooksError,
  type ReceiverOptions,
  Reject,
} from "@payhooks/core";
import { ready } from "@payhooks/core/fetch";
import { createInbox, memoryStore, type RecordStore } from "@payhooks/core/inbox";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { silent } from "../../../../test/support/silent.ts";
import { codeOfReply, deliveryOf, noticed, rejectedBy } from "../receiving.ts";

const keys = createTestKeys();

/** A store at a distance that can be away, and a receiver on it. */
function setUp(options: Partial<ReceiverOptions> = {}, overrides: Partial<RecordStore> = {}) {
  const clock = fakeClock();
  const state = { fault: null as Error | null, opened: 0 };
  const memory = memoryStore({ clock });
  const store: RecordStore = {
    ...memory,
    immediate: false,
    endsWithProcess: false,
    async open() {
      state.opened++;
      if (state.fault !== null) throw state.fault;
      await memory.open();
    },
    swap: async (items) => {
      if (state.fault !== null) {
        const cause = state.fault;
        return items.map(() => ({ kind: "not-written", cause }));
      }
      return memory.swap(items);
    },
    ...overrides,
  };
  const inbox = createInbox(store, { clock });
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox,
    clock,
    logger: silent,
    ...options,
  });
  const ran: string[] = [];
  receiver.onDeposit(({ referenceId }) => void ran.push(referenceId)).ignore("WITHDRAWAL");
  const notices: Notice[] = [];
  receiver.observe((notice) => notices.push(notice));
  const typed = <Type extends Notice["type"]>(type: Type) =>
    notices.filter((notice): notice is Extract<Notice, { type: Type }> => notice.type === type);
  const deliver = async (mounted: boolean) => {
    const fields = callbackFields();
    const delivery = deliveryOf(signPaymentCallback(fields, keys.privateKey));
    const answering = receiver.payments.receive(delivery, { mounted });
    await clock.advance(2_500);
    return answering;
  };
  const close = async (): Promise<void> => {
    const closing = receiver.close({ graceMs: 0 });
    await clock.advance(1);
    await closing;
  };
  return { clock, state, memory, receiver, ran, typed, deliver, close };
}

const away = (): Error =>
  Object.assign(new Error("connect"), {
    code: "ECONNREFUSED",
    syscall: "connect",
    address: "10.1.2.3",
    port: 6379,
  });

describe("a start that fails", () => {
  it("rejects for its caller, and is repeated at longer and longer intervals until it succeeds", async () => {
    const { clock, state, receiver, typed } = setUp();
    state.fault = away();
    expect((await rejectedBy(receiver.start())).code).toBe("ERR_INBOX_UNAVAILABLE");
    await clock.advance("5m");
    // From half a second on, doubled up to ten seconds, each of them spread by half.
    expect(state.opened).toBeGreaterThan(20);
    expect(state.opened).toBeLessThan(70);
    expect(await receiver.ready()).toMatchObject({ ok: false, code: "not-started" });
    expect(await receiver.health()).toMatchObject({ ok: false, failing: "start" });
    state.fault = null;
    await clock.advance(16_000);
    expect(await receiver.ready()).toEqual({ ok: true, code: null, detail: null });
    expect(await receiver.health()).toMatchObject({ ok: true, failing: null });
    expect(typed("stalled")).toMatchObject([{ during: "start", error: expect.stringContaining("10.1.2.3") }]);
    expect(typed("recovered")).toMatchObject([{ during: "start" }]);
    await receiver.close({ graceMs: 0 });
  });

  it("does not keep waiting events from running once the store is back, although nothing is delivered", async () => {
    const { clock, state, receiver, ran, memory } = setUp();
    const other = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox: createInbox({ ...memory, close: async () => {} }, { clock }),
      clock,
      logger: silent,
      run: "elsewhere",
    });
    await other.start();
    const fields = callbackFields();
    await other.payments.receive(deliveryOf(signPaymentCallback(fields, keys.privateKey)));
    state.fault = away();
    await rejectedBy(receiver.start());
    await clock.advance("1m");
    expect(ran).toEqual([]);
    state.fault = null;
    await clock.advance(16_000);
    expect(ran).toEqual([fields.referenceId]);
    await receiver.close({ graceMs: 0 });
    await other.close({ graceMs: 0 });
  });

  it("is repeated also if a delivery made it, which is answered 503", async () => {
    const { clock, state, receiver, deliver } = setUp();
    state.fault = away();
    expect(codeOfReply(await deliver(true))).toBe("ERR_INBOX_UNAVAILABLE");
    state.fault = null;
    await clock.advance(16_000);
    expect(await receiver.ready()).toMatchObject({ ok: true });
    const before = state.opened;
    await clock.advance("1m");
    expect(state.opened).toBe(before);
    await receiver.close({ graceMs: 0 });
  });

  it("is not repeated after a close", async () => {
    const { clock, state, receiver } = setUp();
    state.fault = away();
    await rejectedBy(receiver.start());
    await receiver.close({ graceMs: 0 });
    const { opened } = state;
    await clock.advance("5m");
    expect(state.opened).toBe(opened);
  });

  it("because of the set-up is reported again only when its error changes", async () => {
    const { clock, state, receiver, typed } = setUp();
    state.fault = new PayhooksError("ERR_POSTGRES_UNSUITABLE", "The role lacks a privilege.");
    expect((await rejectedBy(receiver.start())).code).toBe("ERR_POSTGRES_UNSUITABLE");
    await clock.advance("2m");
    expect(typed("inbox-error").map(({ count }) => count)).toEqual([1]);
    expect(await receiver.ready()).toMatchObject({ ok: false, code: "misconfigured" });
    state.fault = new PayhooksError("ERR_POSTGRES_UNSUITABLE", "The encoding is LATIN1.");
    await clock.advance("2m");
    expect(typed("inbox-error")).toHaveLength(2);
    state.fault = null;
    await clock.advance(16_000);
    expect(await receiver.ready()).toMatchObject({ ok: true });
    await receiver.close({ graceMs: 0 });
  });
});

describe("ready over HTTP", () => {
  it("answers with a code, and the log has the words, once for each change", async () => {
    const { clock, state, receiver, typed } = setUp();
    const ask = async (): Promise<[number, string]> => {
      const asking = ready(receiver)(new Request("http://shop.example/ready"));
      await clock.advance(1_000);
      const answer = await asking;
      return [answer.status, await answer.text()];
    };
    await receiver.start();
    expect(await ask()).toEqual([200, '{"ok":true}']);
    state.fault = away();
    await clock.advance("20s");
    for (let time = 0; time < 5; time++) {
      expect(await ask()).toEqual([503, '{"ok":false,"code":"inbox-unavailable"}']);
    }
    await noticed();
    expect(typed("readiness")).toMatchObject([
      { ok: false, code: "inbox-unavailable", detail: expect.stringContaining("10.1.2.3") },
    ]);
    state.fault = null;
    await clock.advance("20s");
    expect(await ask()).toEqual([200, '{"ok":true}']);
    await noticed();
    expect(typed("readiness").map(({ ok }) => ok)).toEqual([false, true]);
    await receiver.close({ graceMs: 0 });
    expect(await ask()).toEqual([503, '{"ok":false,"code":"closing"}']);
  });

  it("says nothing about why a factory failed", async () => {
    const probe = ready(async () => {
      throw Object.assign(new Error("ENOENT: /etc/shop/secrets/pay.pem"), { code: "ENOENT" });
    });
    const answer = await probe(new Request("http://shop.example/ready"));
    expect([answer.status, await answer.text()]).toEqual([503, '{"ok":false,"code":"no-receiver"}']);
  });
});

describe("a delivery whose deadline passes", () => {
  it.each([
    ["refuses each write", { kind: "not-written" as const }],
    ["leaves each write open", { kind: "unknown" as const }],
  ])("while the store %s is answered 503, and the log has the store's last error", async (_, { kind }) => {
    const cause = Object.assign(new Error("OOM command not allowed"), { name: "ReplyError" });
    const { receiver, typed, deliver, close } = setUp(
      { run: "elsewhere" },
      { swap: async (items) => items.map(() => ({ kind, cause })) },
    );
    await receiver.start();
    const reply = await deliver(false);
    expect([reply.status, String(reply.body)]).toEqual([503, '{"error":{"code":"ERR_INBOX_UNAVAILABLE"}}']);
    await noticed();
    expect(typed("refused")).toMatchObject([
      { code: "ERR_INBOX_UNAVAILABLE", why: expect.stringContaining("ReplyError: OOM") },
    ]);
    await close();
  });

  it("while the store does not answer is answered 503, and the log says so", async () => {
    const { receiver, typed, deliver, close } = setUp(
      { run: "elsewhere" },
      { swap: () => new Promise(() => {}) },
    );
    await receiver.start();
    expect(codeOfReply(await deliver(false))).toBe("ERR_ACCEPT_TIMEOUT");
    await noticed();
    expect(typed("refused")).toMatchObject([{ why: "no answer within limits.acceptTimeoutMs" }]);
    await close();
  });
});

describe("an instrumentation", () => {
  type Run = (call: () => unknown) => unknown;
  const broken = new Error("the instrumentation is broken");
  const RUNS: readonly (readonly [string, isReported: boolean, run: Run])[] = [
    ["returns the result", false, (call) => call()],
    [
      "ends its span with the promise of the call",
      false,
      (call) => Promise.resolve(call()).finally(() => {}),
    ],
    ["waits for the call", false, async (call) => await call()],
    ["never calls", false, () => undefined],
    ["calls twice", false, (call) => [call(), call()][1]],
    ["forgets the result", false, (call) => void call()],
    ["returns another result", false, (call) => [call(), "another"][1]],
    [
      "throws before the call",
      true,
      () => {
        throw broken;
      },
    ],
    [
      "throws after the call",
      true,
      (call) => {
        call();
        throw broken;
      },
    ],
    ["rejects before the call", true, () => Promise.reject(broken)],
    [
      "rejects after the call",
      true,
      (call) => {
        call();
        return Promise.reject(broken);
      },
    ],
    [
      "never settles",
      false,
      (call) => {
        call();
        return new Promise(() => {});
      },
    ],
  ];

  const observation = (run: Run) => () => ({ trace: null, run, end: () => {} }) as never;

  /** Delivers one callback, whose handler fails at its first attempt. */
  async function observed(given: Partial<Instrumentation>, fail: () => unknown) {
    const instrumentation: Instrumentation = {
      attach() {},
      onNotice() {},
      observeDelivery: () => null,
      observeHandler: () => null,
      onEventEnd() {},
      ...given,
    };
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    const receiver = createReceiver({
      payments: { publicKey: keys.publicKey },
      inbox,
      clock,
      logger: silent,
      instrumentation,
    });
    let calls = 0;
    receiver.onDeposit(() => (++calls === 1 ? fail() : undefined)).ignore("WITHDRAWAL");
    const notices: Notice[] = [];
    receiver.observe((notice) => notices.push(notice));
    await receiver.start();
    const fields = callbackFields();
    const { status } = await receiver.payments.receive(
      deliveryOf(signPaymentCallback(fields, keys.privateKey)),
    );
    await clock.advance("1m");
    await noticed();
    const { events } = await receiver.events.list({ id: fields.payTxnId });
    await receiver.close({ graceMs: 0 });
    const reports = notices.filter(
      (notice) => notice.type === "warning" && notice.what.startsWith("The instrumentation has failed"),
    );
    const retries = notices.filter(({ type }) => type === "retry");
    return {
      status,
      calls,
      retries: retries.length,
      states: events.map(({ state }) => state),
      reports: reports.length,
    };
  }

  const FAILURES: readonly (readonly [string, () => unknown])[] = [
    [
      "throws",
      () => {
        throw new Error("the database is away");
      },
    ],
    [
      "rejects",
      async () => {
        await noticed();
        throw new Error("the database is away");
      },
    ],
  ];
  const cases = RUNS.flatMap(([what, isReported, run]) =>
    FAILURES.map(([how, fail]) => [what, how, isReported, run, fail] as const),
  );

  it.each(cases)(
    "whose run of a handler %s changes nothing for the event, if the handler %s once",
    async (_what, _how, isReported, run, fail) => {
      const result = await observed({ observeHandler: observation(run) }, fail);
      expect(result).toEqual({
        status: 200,
        calls: 2,
        retries: 1,
        states: ["done"],
        reports: isReported ? 1 : 0,
      });
    },
  );

  it.each(RUNS)(
    "whose run of a delivery %s changes nothing for its answer",
    async (_what, isReported, run) => {
      const result = await observed({ observeDelivery: observation(run) }, () => undefined);
      expect(result).toEqual({
        status: 200,
        calls: 1,
        retries: 0,
        states: ["done"],
        reports: isReported ? 1 : 0,
      });
    },
  );

  it.each(["attach", "noticed", "delivery", "handler", "ended", "end"])(
    "whose %s is async and rejects is reported once, and changes nothing for the event",
    async (name) => {
      const unhandled: unknown[] = [];
      const hear = (error: unknown): void => void unhandled.push(error);
      process.on("unhandledRejection", hear);
      onTestFinished(() => void process.off("unhandledRejection", hear));
      const hook = (own: string, result: unknown) => (): never =>
        (own === name ? Promise.reject(broken) : result) as never;
      const observation = { trace: null, run: (call: () => unknown) => call(), end: hook("end", undefined) };
      const result = await observed(
        {
          attach: hook("attach", undefined),
          onNotice: hook("noticed", undefined),
          observeDelivery: hook("delivery", observation),
          observeHandler: hook("handler", observation),
          onEventEnd: hook("ended", undefined),
        },
        () => {
          throw new Reject("no");
        },
      );
      // Node tells of a rejection after the microtasks of its turn.
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
      expect(result).toEqual({ status: 200, calls: 1, retries: 0, states: ["held"], reports: 1 });
    },
  );

  it("whose observation is a promise is reported once, and changes nothing for the event", async () => {
    const late = async () => ({ trace: null, run: (call: () => unknown) => call(), end: () => {} });
    const result = await observed(
      { observeDelivery: late as never, observeHandler: late as never },
      () => undefined,
    );
    expect(result).toEqual({ status: 200, calls: 1, retries: 0, states: ["done"], reports: 1 });
  });

  it("does not begin a query twice that begins at each await", async () => {
    let begun = 0;
    const query = {
      // biome-ignore lint/suspicious/noThenProperty: as the queries of some libraries.
      then(resolve: () => void) {
        begun++;
        resolve();
      },
    };
    await observed({ observeHandler: observation(async (call) => await call()) }, () => query);
    expect(begun).toBe(1);
  });
});
