import {
  createReceiver,
  type HandlerContext,
  memoryInbox,
  type ReceiverOptions,
  Reject,
  RetryAfter,
  serviceNames,
} from "@payhooks/core";
import { eachEvent } from "@payhooks/core/events";
import {
  anyCallbackFields,
  createHarness,
  createTestKeys,
  fakeClock,
  type Harness,
  type HarnessOptions,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { silent } from "../../../../test/support/silent.ts";

const keys = createTestKeys();

function harness(
  register: HarnessOptions["register"],
  receiver: HarnessOptions["receiver"] = {},
): Promise<Harness> {
  return createHarness({ keys, register, receiver });
}

const payments = (options: Partial<NonNullable<ReceiverOptions["payments"]>>) => ({
  payments: { publicKey: keys.publicKey, ...options },
});

const noticed = (t: Harness, type: string): readonly object[] =>
  t.notices.filter((notice) => notice.type === type);

describe("the handlers of an event", () => {
  it("a function runs on SUCCESS only; statuses that are left out are not wanted, and done", async () => {
    const ran: string[] = [];
    const t = await harness((receiver) =>
      receiver
        .onDeposit(({ status }) => void ran.push(`deposit ${status}`))
        .onWithdrawal({ FAILED: ({ status }) => void ran.push(`withdrawal ${status}`) }),
    );
    for (const status of ["PENDING", "SUCCESS", "FAILED"] as const) {
      expect(await t.deposit({ status })).toMatchObject({ status: 200, outcome: "done" });
      expect(await t.withdrawal({ status })).toMatchObject({ status: 200, outcome: "done" });
    }
    expect(ran).toEqual(["deposit SUCCESS", "withdrawal FAILED"]);
  });

  it("several handlers of one event run in the order of their registration, each with its own effectId", async () => {
    const effects: string[] = [];
    const record = (_: unknown, { effectId, eventId }: HandlerContext) =>
      void effects.push(effectId.slice(eventId.length));
    const t = await harness((receiver) =>
      receiver.onDeposit(record).onDeposit(record, { name: "mail" }).onDeposit(record, { name: "books" }),
    );
    expect((await t.deposit()).ran).toEqual(["deposit", "mail", "books"]);
    expect(effects).toEqual([".deposit", ".mail", ".books"]);
  });

  it("an event without a handler is held, unless it is ignored", async () => {
    const without = await harness((receiver) => receiver.onDeposit(() => {}));
    expect(await without.withdrawal()).toMatchObject({ status: 200, outcome: "held" });
    expect((await without.held()).map(({ reason, event }) => [reason, event])).toEqual([
      ["unhandled", "WITHDRAWAL"],
    ]);
    const ignoring = await harness((receiver) => receiver.onDeposit(() => {}).ignore("WITHDRAWAL"));
    expect(await ignoring.withdrawal()).toMatchObject({ status: 200, outcome: "done", ran: [] });
  });

  it("a contradiction that is replayed for a handler that does not exist is still held as the contradiction", async () => {
    const paid: string[] = [];
    const t = await harness((receiver) => receiver.onDeposit(({ amount }) => void paid.push(amount)));
    await t.deposit({ payTxnId: "tx-1", referenceId: "o-1", amount: "10" });
    await t.deposit({ payTxnId: "tx-1", referenceId: "o-1", amount: "99" });
    const [entry] = await t.held();
    const by = { by: "ops", note: "the service says so" };
    await t.receiver.events.replay(entry?.eventId ?? "", { ...by, handlers: ["depositt"] });
    await t.advance("1s");
    expect(await t.held()).toMatchObject([
      {
        reason: "mismatch",
        detail: "no handler of DEPOSIT has the name that was replayed: depositt",
      },
    ]);
    // A bulk without a reason leaves it alone.
    expect(await t.receiver.events.replay({ state: "held" }, by)).toMatchObject({
      decided: 0,
      excluded: { mismatch: 1 },
    });
    await t.advance("1s");
    expect(paid).toEqual(["10"]);
  });

  it.each([[[]], ["deposit"], [[1]]])("a replay for the handlers %j is refused", async (handlers) => {
    const t = await harness((receiver) => receiver.onDeposit(() => {}));
    const { eventId } = await t.deposit();
    const decision = { by: "ops", note: "again", handlers } as never;
    await expect(t.receiver.events.replay(eventId ?? "", decision)).rejects.toMatchObject({
      code: "ERR_OPTION_INVALID",
      message: expect.stringContaining("The handlers of a replay are not a list of names."),
    });
  });

  it("each handler is given the previous status and amount, if they have changed", async () => {
    const seen: unknown[] = [];
    const t = await harness((receiver) =>
      receiver.onDeposit({
        PENDING: (_, { previousStatus, previousAmount }) => void seen.push([previousStatus, previousAmount]),
        SUCCESS: (_, { previousStatus, previousAmount }) => void seen.push([previousStatus, previousAmount]),
      }),
    );
    await t.deposit({ payTxnId: "tx-1", referenceId: "o-1", status: "PENDING", amount: "10.500000" });
    await t.deposit({ payTxnId: "tx-1", referenceId: "o-1", amount: "10.250000" });
    await t.deposit({ payTxnId: "tx-2", referenceId: "o-2", status: "PENDING", amount: "10.5" });
    // The same amount, spelled differently.
    await t.deposit({ payTxnId: "tx-2", referenceId: "o-2", amount: "10.500000" });
    expect(seen).toEqual([
      [null, null],
      ["PENDING", "10.500000"],
      [null, null],
      ["PENDING", null],
    ]);
    expect(noticed(t, "amount-changed")).toMatchObject([
      { previousAmount: "10.500000", amount: "10.250000" },
    ]);
  });

  it("a look-up with another amount is a duplicate of the callback, with a notice", async () => {
    let ran = 0;
    const t = await harness((receiver) => receiver.onDeposit(() => void ran++));
    const now = new Date(t.clock.now()).toISOString();
    await t.deposit({ payTxnId: "tx-1", referenceId: "o-1", amount: "10.500000", merchantId: "m-1" });
    const answer = await t.receiver.payments.ingest({
      id: "tx-1",
      reference: "o-1",
      type: "DEPOSIT",
      status: "SUCCESS",
      base_amount: "10.00",
      callback_url: "https://merchant.example/pay",
      updated_at: now,
      merchant_id: "m-1",
    });
    expect(answer.outcome).toBe("duplicate");
    await t.advance("1s");
    expect(noticed(t, "amount-changed")).toMatchObject([
      { previousAmount: "10.500000", amount: "10.000000" },
    ]);
    expect(ran).toBe(1);
  });

  it("a look-up is refused by a receiver that is closing, or that begins to close while its inbox connects", async () => {
    let connect = (): void => {};
    const connecting = new Promise<void>((resolve) => {
      connect = resolve;
    });
    const inbox = Object.assign(memoryInbox(), { ready: () => connecting });
    const receiver = createReceiver({ ...payments({}), inbox });
    receiver.onDeposit(() => {});
    const transaction = {
      id: "tx-1",
      reference: "o-1",
      type: "DEPOSIT",
      status: "SUCCESS",
      base_amount: "10.00",
      callback_url: "https://merchant.example/pay",
      updated_at: new Date().toISOString(),
    };
    const early = receiver.payments.ingest(transaction);
    const closing = receiver.close();
    const late = receiver.payments.ingest(transaction);
    connect();
    const refused = { code: "ERR_CLOSING", status: 503 };
    await expect(early).rejects.toMatchObject(refused);
    await expect(late).rejects.toMatchObject(refused);
    expect(await closing).toEqual({ unfinished: 0 });
  });
});

describe("handlers and their time", () => {
  it("the signal of a handler aborts when its time is up, and a later return does not count", async () => {
    const reasons: string[] = [];
    const attempts: number[] = [];
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const t = await harness((receiver) =>
      receiver.onDeposit(
        (_, { signal, attempt }) => {
          attempts.push(attempt);
          begin();
          if (attempt > 1) return;
          return new Promise<void>((resolve) => {
            signal.addEventListener("abort", () => {
              reasons.push(String(signal.reason));
              resolve();
            });
          });
        },
        { timeoutMs: 5_000, backoffMs: () => 3_000 },
      ),
    );
    const delivering = t.deposit();
    await begun;
    await t.advance("4s");
    expect(reasons).toEqual([]);
    await t.advance("2s");
    expect(reasons).toEqual(["Error: timed out after 5000 ms"]);
    expect(await delivering).toMatchObject({ status: 200, outcome: "retrying" });
    expect(await t.advance("2s")).toEqual(["deposit"]);
    expect(attempts).toEqual([1, 2]);
    expect(noticed(t, "double-risk")).toMatchObject([{ why: "timeout" }]);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1, "5000", null, 5n, true])(
    "a backoff of %s falls back to the default",
    async (backoff) => {
      const t = await harness((receiver) =>
        receiver.onDeposit(
          () => {
            throw new Error("no");
          },
          { backoffMs: () => backoff as number },
        ),
      );
      await t.deposit();
      const [retry] = noticed(t, "retry") as readonly { readonly delayMs: number }[];
      expect(retry?.delayMs).toBeGreaterThanOrEqual(500);
      expect(retry?.delayMs).toBeLessThanOrEqual(1_500);
      expect(await t.advance("2s")).toContain("deposit");
    },
  );

  it("a retry after more than ten years comes after ten years, a time that every store can write", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit(() => {
        throw new RetryAfter(Number.MAX_SAFE_INTEGER);
      }),
    );
    await t.deposit();
    const [retry] = noticed(t, "retry") as readonly { readonly delayMs: number }[];
    expect(retry?.delayMs).toBe(10 * 366 * 86_400_000);
  });

  it("anything that is thrown is kept as one line of bounded length", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit(
        () => {
          throw "x".repeat(10_000);
        },
        { maxAttempts: 1 },
      ),
    );
    await t.deposit();
    const [entry] = await t.held();
    expect(entry).toMatchObject({ reason: "exhausted" });
    expect(entry?.detail?.length).toBeLessThan(600);
  });

  it("an error of another copy of the package is recognised by its brand", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit(() => {
        throw Object.assign(new Error("theirs"), { [Symbol.for("payhooks.Reject")]: true });
      }),
    );
    await t.deposit();
    expect((await t.held()).map(({ reason, detail }) => [reason, detail])).toEqual([
      ["rejected", "Error: theirs"],
    ]);
  });
});

describe("a replay of named handlers", () => {
  it("that names none of the event's handlers runs nothing, and keeps the entry", async () => {
    const t = await harness((receiver) =>
      receiver.onDeposit(() => {
        throw new Reject("no");
      }),
    );
    const { eventId } = await t.deposit();
    await t.receiver.events.replay(eventId ?? "", {
      by: "an operator",
      note: "a slip",
      handlers: ["depositt"],
    });
    expect(await t.advance("1s")).toEqual([]);
    const entries = await t.held();
    expect(entries.map((entry) => entry.eventId)).toEqual([eventId]);
    expect(entries[0]?.detail).toContain("depositt");
  });
});

describe("a held callback that is replayed too late", () => {
  it("stays held when the inbox can no longer tell whether its event ran", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 2 });
    const ran: string[] = [];
    const receiverWith = (extra: Readonly<Record<string, "always">>) =>
      createReceiver({
        payments: { publicKey: keys.publicKey },
        names: serviceNames({ callback: { extra } }),
        inbox,
        clock,
        run: "elsewhere",
        logger: silent,
      }).onDeposit(({ payTxnId }) => void ran.push(payTxnId));
    const [strict, lenient] = [receiverWith({}), receiverWith({ region: "always" })];
    const deliver = async (receiver: typeof strict, payTxnId: string) => {
      const fields = anyCallbackFields({ payTxnId, region: "north" }, clock.now());
      const { rawBody, headers } = signPaymentCallback(fields, keys.privateKey);
      const head = { method: "POST", url: "/", headers: { get: (name: string) => headers[name] ?? null } };
      expect((await receiver.payments.receive({ ...head, rawBody })).status).toBe(200);
      await receiver.work();
    };
    const held = async () => {
      const entries = [];
      for await (const entry of eachEvent(strict.events, { state: "held" })) entries.push(entry);
      return entries;
    };
    await deliver(strict, "tx-entry");
    for (let n = 1; n <= 4; n++) {
      await clock.advance("1h");
      await deliver(lenient, `tx-${n}`);
    }
    const [entry] = await held();
    await lenient.events.replay(entry?.eventId ?? "", { by: "an operator", note: "declared the field" });
    await lenient.work();
    await lenient.work();
    expect(ran).toEqual(["tx-1", "tx-2", "tx-3", "tx-4"]);
    expect((await held()).map(({ eventId, reason, detail }) => ({ eventId, reason, detail }))).toEqual([
      {
        eventId: entry?.eventId,
        reason: "ambiguous",
        detail: expect.stringContaining("evenIfExpired"),
      },
    ]);
  });
});
