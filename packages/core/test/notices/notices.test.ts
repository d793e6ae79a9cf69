import { inspect } from "node:util";
import {
  createReceiver,
  type Logger,
  memoryInbox,
  type Notice,
  Reject,
  RetryAfter,
  verifyConnectWebhook,
  verifyPaymentCallback,
} from "@payhooks/core";
import {
  anyCallbackFields,
  anyConnectEvent,
  asDelivery,
  callbackFields,
  connectEvent,
  createTestKeys,
  fakeClock,
  signConnectWebhook,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { deliveryOf, handleEverything, noticed, setUp, signatureOf, thrownBy } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const SECRET = "whsec_canary_5f3a9c71d2";
const sign = (fields: Record<string, string | null> = {}) =>
  signPaymentCallback(anyCallbackFields(fields), privateKey);

describe("the observer", () => {
  it("is told of every outcome of a delivery, with the flow, the id and the event", async () => {
    const t = await setUp({ payments: { publicKey }, connect: { secret: SECRET } });
    const typesOf = async (sent: ReturnType<typeof sign>, flow: "payments" | "connect" = "payments") => {
      const from = t.notices.length;
      await t.post(flow, sent);
      return t.notices.slice(from).map(({ type }) => type);
    };
    const pending = sign({ payTxnId: "tx-1", referenceId: "o-1", status: "PENDING" });
    const success = sign({ payTxnId: "tx-1", referenceId: "o-1", amount: "11.000000" });
    expect(await typesOf(pending)).toEqual(["accepted", "started", "done", "finished"]);
    expect(await typesOf(success)).toEqual(["amount-changed", "accepted", "started", "done", "finished"]);
    expect(await typesOf(success)).toEqual(["duplicate"]);
    expect(await typesOf(sign({ payTxnId: "tx-2", referenceId: "o-2" }))).toContain("accepted");
    expect(await typesOf(sign({ payTxnId: "tx-2", referenceId: "o-2", status: "PENDING" }))).toEqual([
      "stale",
    ]);
    expect(await typesOf(sign({ status: "success" }))).toContain("held");
    expect(await typesOf(sign({ referenceId: "a&s=1" }))).toContain("held");
    expect(await typesOf(asDelivery({ ...callbackFields(), signature: signatureOf(pending) }))).toEqual([
      "refused",
    ]);
    expect(await typesOf(signConnectWebhook(connectEvent(), SECRET), "connect")).toContain("accepted");
    expect(t.notices).toContainEqual(
      expect.objectContaining({
        type: "accepted",
        flow: "payments",
        id: "tx-1",
        event: "DEPOSIT",
        status: "PENDING",
      }),
    );
    expect(t.notices).toContainEqual(
      expect.objectContaining({
        type: "refused",
        code: "ERR_SIGNATURE_INVALID",
        httpStatus: 401,
        address: "192.0.2.1",
      }),
    );
    const [entry] = await t.held();
    await t.receiver.events.discard(entry?.eventId ?? "", { by: "ada", note: "a test" });
    await noticed();
    expect(t.notices.at(-1)).toEqual({
      at: t.clock.now(),
      type: "discarded",
      eventId: entry?.eventId,
      by: "ada",
      note: "a test",
    });
  });

  it("is told who has erased how many events, and which, even if the erasure failed on its way", async () => {
    const t = await setUp({ payments: { publicKey } });
    for (let n = 0; n < 52; n++)
      await t.post("payments", sign({ payTxnId: `tx-${n}`, referenceId: `order-${n}` }));
    const { events } = t.receiver;
    const now = { by: "ada", perSecond: Number.POSITIVE_INFINITY };
    const erased = () => t.notices.filter((notice) => notice.type === "erased");
    t.clock.advance(2);
    const which = { state: "finished" } as const;
    await events.erase(which, { ...now, dryRun: true });
    await noticed();
    expect(erased()).toEqual([]);
    const gone: string[] = [];
    const failing = events.erase(which, {
      ...now,
      progress: ({ eventId }) => {
        if (gone.push(eventId) === 51) throw new Error("the audit log is full");
      },
    });
    await expect(failing).rejects.toMatchObject({ code: "ERR_INBOX_UNAVAILABLE" });
    const { name } = await events.erase(which, now);
    await noticed();
    expect(erased().map(({ by, count }) => ({ by, count }))).toEqual(
      [50, 1, 1].map((count) => ({ by: "ada", count })),
    );
    expect(
      erased()
        .flatMap(({ eventIds }) => eventIds)
        .slice(0, 51),
    ).toEqual(gone);
    expect(erased().at(-1)).toMatchObject({ name });
    expect(JSON.stringify(erased())).not.toMatch(/order-|tx-/);
  });

  it("that throws changes no answer and no run, and is written to the log", async () => {
    const t = await setUp({ payments: { publicKey } });
    t.receiver.observe(() => {
      throw new Error("the observer is broken");
    });
    expect(await t.post("payments", sign())).toMatchObject({ status: 200 });
    expect(t.ran).toHaveLength(1);
    expect(t.lines).toContainEqual([
      "error",
      "the observer threw",
      { error: "Error: the observer is broken" },
    ]);
  });

  it("is called after the answer, so that a slow one does not delay it", async () => {
    const t = await setUp({ payments: { publicKey } });
    const order: string[] = [];
    t.receiver.observe((notice) => order.push(notice.type));
    const work: Promise<unknown>[] = [];
    await t.receiver.payments.receive({ ...deliveryOf(sign()), waitUntil: (w) => work.push(w) });
    order.push("answered");
    await Promise.all(work);
    await noticed();
    expect(order.slice(0, 2)).toEqual(["answered", "accepted"]);
  });

  it("may return a promise that rejects, or never settles", async () => {
    const t = await setUp({ payments: { publicKey } });
    const unhandled: unknown[] = [];
    const keep = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", keep);
    onTestFinished(() => void process.off("unhandledRejection", keep));
    t.receiver.observe(() => new Promise(() => {}) as unknown as undefined);
    t.receiver.observe(async () => {
      throw new Error("the pager is down");
    });
    t.receiver.observe(() => {
      throw Object.create(null);
    });
    expect(await t.post("payments", sign())).toMatchObject({ status: 200 });
    expect(t.ran).toHaveLength(1);
    await noticed();
    expect(unhandled).toEqual([]);
    const errors = t.lines.flatMap(([, , facts]) => (facts as { error?: string } | null)?.error ?? []);
    // One line for what threw first; the others are counted.
    expect(errors).toEqual(["a value that has no text"]);
  });

  it("is one of several, each of which can be ended", async () => {
    const t = await setUp({ payments: { publicKey } });
    const seen: Notice[] = [];
    const observer = (notice: Notice): void => void seen.push(notice);
    const endings = [t.receiver.observe(observer), t.receiver.observe(observer)];
    const accepted = async (): Promise<readonly [number, number]> => {
      for (const notices of [seen, t.notices]) notices.splice(0);
      await t.post("payments", sign());
      return [seen, t.notices].map(
        (notices) => notices.filter(({ type }) => type === "accepted").length,
      ) as unknown as readonly [number, number];
    };
    expect(await accepted()).toEqual([2, 1]);
    endings[0]?.();
    endings[0]?.();
    expect(await accepted()).toEqual([1, 1]);
    endings[1]?.();
    expect(await accepted()).toEqual([0, 1]);
  });

  it("that throws keeps no other from its notices", async () => {
    const t = await setUp({ payments: { publicKey } });
    t.receiver.observe(() => {
      throw new Error("the observer is broken");
    });
    const seen: string[] = [];
    t.receiver.observe(({ type }) => seen.push(type));
    await t.post("payments", sign());
    expect(seen).toContain("accepted");
  });
});

describe("the logger", () => {
  it("that throws changes no answer and no run", async () => {
    const broken = (): never => {
      throw new Error("the disk is full");
    };
    const clock = fakeClock();
    const logger: Logger = { info: broken, warn: broken, error: broken };
    const receiver = createReceiver({
      payments: { publicKey },
      logger,
      clock,
      inbox: memoryInbox({ clock, maxRecords: 100 }),
      run: "after-response",
    });
    const ran: unknown[] = [];
    handleEverything(receiver, ran as never);
    const work: Promise<unknown>[] = [];
    for (const sent of [sign({ status: "success" }), sign()]) {
      const reply = await receiver.payments.receive({ ...deliveryOf(sent), waitUntil: (w) => work.push(w) });
      expect(reply.status).toBe(200);
    }
    await Promise.all(work);
    await noticed();
    expect(ran).toHaveLength(1);
  });
});

describe("a notice", () => {
  it("has its time, from the receiver's clock", async () => {
    const t = await setUp({ payments: { publicKey } });
    const start = t.clock.now();
    const sent = sign();
    await t.post("payments", sent);
    await t.clock.advance("3m");
    await t.post("payments", sent);
    expect(t.notices.map(({ type, at }) => [type, at - start])).toEqual([
      ...["accepted", "started", "done", "finished"].map((type) => [type, 0]),
      ["duplicate", 180_000],
    ]);
  });

  it("names the merchant's reference, of a delivery and of a run", async () => {
    const t = await setUp({ payments: { publicKey }, connect: { secret: SECRET } });
    await t.post("payments", sign({ payTxnId: "tx-1", referenceId: "order-1" }));
    await t.post("payments", sign({ payTxnId: "tx-1", referenceId: "order-1", status: "FAILED" }));
    const facts = t.notices.flatMap((notice) =>
      "referenceId" in notice ? [[notice.type, notice.referenceId]] : [],
    );
    expect(facts).toEqual(
      ["accepted", "started", "done", "finished", "held"].map((type) => [type, "order-1"]),
    );
    const [entry] = await t.held();
    expect(entry).toMatchObject({ referenceId: "order-1", reason: "conflict" });
  });

  it("names that of a look-up, and of a copy that was overtaken", async () => {
    const t = await setUp({ payments: { publicKey }, run: "elsewhere" });
    const transaction = {
      ...{ id: "tx-9", reference: "order-9", type: "DEPOSIT", base_amount: "10.50" },
      ...{ callback_url: "https://merchant.example/cb", updated_at: new Date(t.clock.now()).toISOString() },
    };
    await t.receiver.payments.ingest({ ...transaction, status: "PENDING" });
    await t.receiver.payments.ingest({ ...transaction, status: "SUCCESS" });
    await t.receiver.work();
    await noticed();
    expect(t.notices.filter(({ type }) => type === "stale" || type === "done")).toEqual([
      expect.objectContaining({ type: "stale", referenceId: "order-9" }),
      expect.objectContaining({ type: "done", referenceId: "order-9" }),
    ]);
  });

  it("names the account or the settlement of a webhook", async () => {
    const t = await setUp({ connect: { secret: SECRET } });
    const event = connectEvent();
    await t.post("connect", signConnectWebhook(event, SECRET), {});
    const facts = t.notices.flatMap((notice) => ("referenceId" in notice ? [notice.referenceId] : []));
    expect(facts.length).toBeGreaterThan(1);
    expect(new Set(facts)).toEqual(new Set([(event.data as { readonly id: string }).id]));
  });

  it("names none where the reading is not certain", async () => {
    const t = await setUp({ payments: { publicKey } });
    await t.post("payments", sign({ referenceId: "order-1&status=SUCCESS" }));
    const facts = t.notices.flatMap((notice) => ("referenceId" in notice ? [notice.referenceId] : []));
    expect(facts.length).toBeGreaterThan(0);
    expect(new Set(facts)).toEqual(new Set([null]));
    expect(await t.held()).toMatchObject([{ reason: "ambiguous", referenceId: null }]);
  });

  it.each([
    ["conflict", { status: "FAILED" }, "status differs from the final one that is recorded"],
    ["mismatch", { amount: "11.000000" }, "amount differs from the one that arrived the same way before"],
    [
      "mismatch",
      { referenceId: "o-2", merchantId: "m-2" },
      "referenceId, merchantId differ from what is recorded",
    ],
  ])(
    "of a %s says which field differs, and so does its entry; none says a value",
    async (reason, changes, detail) => {
      const t = await setUp({ payments: { publicKey } });
      const known = { payTxnId: "tx-1", referenceId: "o-1", merchantId: "m-1" };
      await t.post("payments", sign(known));
      await t.post("payments", sign({ ...known, ...changes }));
      expect(t.notices).toContainEqual(expect.objectContaining({ type: "held", reason, detail }));
      expect(await t.held()).toMatchObject([{ reason, detail }]);
      // A copy is told the same.
      await t.post("payments", sign({ ...known, ...changes }));
      expect(await t.held()).toMatchObject([{ reason, detail }]);
    },
  );
});

describe("nothing secret", () => {
  const CANARY = "canary-8c1e5b7d";
  const keyText = publicKey.split("\n").slice(1, -2);
  const privateText = privateKey.split("\n").slice(1, -2);

  it("is in a notice, a log line, an answer, or in what inspecting the receiver shows", async () => {
    const t = await setUp({ payments: { publicKey }, connect: { secret: SECRET } });
    let failing = 0;
    t.receiver.observe((notice) => t.notices.push(notice));
    const replies: unknown[] = [];
    const signatures: string[] = [];
    const send = async (sent: ReturnType<typeof sign>, flow: "payments" | "connect" = "payments") => {
      const header = sent.headers["x-connect-signature"];
      signatures.push(header ?? signatureOf(sent).slice(0, 60));
      replies.push(await t.post(flow, sent));
    };
    const canary = { message: CANARY, userId: CANARY };
    await send(sign(canary));
    await send(sign({ ...canary, status: "success" }));
    await send(sign({ ...canary, referenceId: `x&status=${CANARY}` }));
    await send(sign({ ...canary, amount: CANARY }));
    await send(sign({ ...canary, event: "REVERSAL" }));
    for (let i = 0; i < 12; i++) {
      await send(asDelivery({ ...anyCallbackFields(canary), signature: signatureOf(sign()) }));
      failing++;
    }
    await send(
      signConnectWebhook(anyConnectEvent("settlement.approved", { note: CANARY }), SECRET),
      "connect",
    );
    await send(
      signConnectWebhook(anyConnectEvent("settlement.approved", { data: CANARY }), SECRET),
      "connect",
    );
    await send(
      signConnectWebhook(anyConnectEvent("settlement.approved", { note: CANARY }), `${SECRET}x`),
      "connect",
    );
    expect(failing).toBe(12);
    expect(t.notices.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["accepted", "held", "refused", "alert"]),
    );
    expect(t.lines.length).toBeGreaterThan(3);
    const shown = [
      JSON.stringify([t.notices, t.lines, replies, t.receiver]),
      inspect([t.notices, t.lines, replies], { depth: 20 }),
      inspect(t.receiver, { depth: 20, showHidden: true }),
      inspect(t.receiver.payments, { depth: 20 }) + inspect(t.receiver.connect, { depth: 20 }),
    ];
    for (const text of shown) {
      for (const secret of [SECRET, CANARY, ...keyText, ...privateText, ...signatures])
        expect(text).not.toContain(secret);
    }
  });

  it("is in an error of the verification functions", () => {
    const ambiguous = sign({ referenceId: `${CANARY}&s=x`, message: CANARY });
    const forged = asDelivery({ ...callbackFields({ message: CANARY }), signature: signatureOf(ambiguous) });
    const webhook = signConnectWebhook(anyConnectEvent(undefined, { note: CANARY, data: CANARY }), SECRET);
    const header = String(webhook.headers["x-connect-signature"]);
    const wrong = `sha256=${"0".repeat(64)}`;
    const errors = [
      thrownBy(() => verifyPaymentCallback(ambiguous.rawBody, { publicKey })),
      thrownBy(() => verifyPaymentCallback(forged.rawBody, { publicKey })),
      thrownBy(() => verifyConnectWebhook(webhook.rawBody, header, { secret: SECRET })),
      thrownBy(() => verifyConnectWebhook(webhook.rawBody, wrong, { secret: SECRET })),
      thrownBy(() =>
        createReceiver({ payments: { publicKey }, connect: { secret: SECRET, unsafeAllowUnsigned: true } }),
      ),
    ];
    expect(errors.map(({ code }) => code)).toEqual([
      ...["ERR_EVENT_AMBIGUOUS", "ERR_SIGNATURE_INVALID", "ERR_EVENT_MALFORMED", "ERR_SIGNATURE_INVALID"],
      "ERR_OPTION_INVALID",
    ]);
    for (const error of errors) {
      const text = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error);
      for (const secret of [SECRET, CANARY, signatureOf(ambiguous), header, ...keyText])
        expect(text).not.toContain(secret);
    }
  });
});

describe("an error that a handler throws", () => {
  it("is reported in one bounded line", async () => {
    const clock = fakeClock();
    const notices: Notice[] = [];
    const receiver = createReceiver({
      payments: { publicKey },
      logger: { info() {}, warn() {}, error() {} },
      clock,
      inbox: memoryInbox({ clock, maxRecords: 100 }),
      run: "after-response",
    });
    const thrown: unknown[] = [
      new Error("e".repeat(5_000)),
      new RetryAfter(5_000),
      new Reject("never"),
      "text",
    ];
    receiver.onDeposit(async () => {
      throw thrown.shift();
    });
    receiver.observe((notice) => notices.push(notice));
    for (let i = 0; i < 4; i++) {
      const work: Promise<unknown>[] = [];
      await receiver.payments.receive({ ...deliveryOf(sign()), waitUntil: (w) => work.push(w) });
      await Promise.all(work);
    }
    await noticed();
    const thrownBefore = notices.filter((notice) => notice.type === "retry" || notice.type === "given-up");
    const facts = thrownBefore.map(({ type, error }) => ({ type, error }));
    expect(facts).toEqual([
      { type: "retry", error: expect.stringMatching(/^Error: e{100,500}…$/) },
      { type: "retry", error: "RetryAfter: to be tried again in 5000 ms" },
      { type: "given-up", error: "Reject: never" },
      { type: "retry", error: "text" },
    ]);
    expect(notices).toContainEqual(expect.objectContaining({ type: "retry", delayMs: 5_000 }));
    expect(notices).toContainEqual(expect.objectContaining({ type: "held", reason: "rejected" }));
  });

  it("is reported with its stack and those of its causes, in notice and log, and stored without", async () => {
    const t = await setUp({ payments: { publicKey } });
    function deepInTheShop(): never {
      throw new Error("no such order", { cause: new TypeError("the row is gone") });
    }
    const broken = createReceiver({
      payments: { publicKey },
      clock: t.clock,
      inbox: memoryInbox({ clock: t.clock }),
      run: "after-response",
      logger: {
        info() {},
        warn: (...line: readonly unknown[]) => t.lines.push(["warn", ...line, null] as never),
        error() {},
      },
    });
    broken.onDeposit(deepInTheShop).observe((notice) => t.notices.push(notice));
    const work: Promise<unknown>[] = [];
    await broken.payments.receive({ ...deliveryOf(sign()), waitUntil: (one) => work.push(one) });
    await Promise.all(work);
    await noticed();
    const [retry] = t.notices.filter((notice) => notice.type === "retry");
    expect(retry?.error).toBe("Error: no such order");
    expect(retry?.stack).toMatch(/^Error: no such order\n +at .*deepInTheShop.*notices\.test/);
    expect(retry?.stack).toContain("\ncaused by TypeError: the row is gone\n    at");
    expect(t.lines).toContainEqual([
      "warn",
      "retry: a handler failed and will run again",
      expect.objectContaining({ stack: retry?.stack }),
      null,
    ]);
    const life = await broken.events.get(retry?.eventId ?? "");
    expect(life?.handlers.deposit).toMatchObject({ state: "failed", error: "Error: no such order" });
    expect(JSON.stringify(life)).not.toContain("notices.test");
  });

  it("has a stack of bounded length, or none", async () => {
    const endless = new Error("x");
    endless.stack = `Error: x\n${"    at f (file.js:1:1)\n".repeat(5_000)}`;
    const circular = new Error("round and round");
    circular.cause = circular;
    const t = await setUp({ payments: { publicKey } });
    const thrown: unknown[] = [endless, circular, "text", null];
    const stacks: (string | null)[] = [];
    for (const one of thrown) {
      const receiver = createReceiver({
        ...{ payments: { publicKey }, clock: t.clock, inbox: memoryInbox({ clock: t.clock }) },
        ...{ run: "after-response", logger: { info() {}, warn() {}, error() {} } },
      });
      receiver.onDeposit(() => Promise.reject(one));
      receiver.observe((notice) => notice.type === "retry" && stacks.push(notice.stack));
      const work: Promise<unknown>[] = [];
      await receiver.payments.receive({ ...deliveryOf(sign()), waitUntil: (w) => work.push(w) });
      await Promise.all(work);
      await noticed();
    }
    const [long, round, ...none] = stacks;
    expect(long?.length).toBeLessThan(4_100);
    expect(round?.match(/round and round/g)).toHaveLength(3);
    expect(none).toEqual([null, null]);
  });
});
