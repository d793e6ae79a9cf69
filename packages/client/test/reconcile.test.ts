import { setImmediate as nextTurn } from "node:timers/promises";
import { createHarness, createTestKeys, type Harness } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  createClient,
  type PaymentsClient,
  type ReconcileOptions,
  type ReconcileResult,
  reconcile,
} from "../src/index.ts";
import { keys, notFound, wireTransaction } from "./fixtures.ts";
import { errorOf, json, type Service, startService, testClock } from "./service.ts";

const testKeys = createTestKeys();

interface Setup {
  readonly t: Harness;
  readonly service: Service;
  readonly client: PaymentsClient;
  /** The statuses that the handlers got: `status payTxnId amount`. */
  readonly handled: string[];
}

/** A real receiver beside a service that knows the given transactions by their reference `r`, and by their id `t-r`. */
async function setUp(known: Readonly<Record<string, object | number>>): Promise<Setup> {
  const handled: string[] = [];
  const t = await createHarness({
    keys: testKeys,
    register: (receiver) => {
      receiver.onDeposit({
        SUCCESS: async (e) => void handled.push(`SUCCESS ${e.payTxnId} ${e.amount} ${e.arrivedBy}`),
        FAILED: async (e) => void handled.push(`FAILED ${e.payTxnId} ${e.amount} ${e.arrivedBy}`),
        PENDING: async (e) => void handled.push(`PENDING ${e.payTxnId} ${e.amount} ${e.arrivedBy}`),
      });
      receiver.ignore("WITHDRAWAL");
    },
  });
  onTestFinished(() => t.close());
  const now = new Date(t.clock.now()).toISOString();
  const service = await startService((response, seen, count) => {
    const reference = decodeURIComponent(seen.path.split("/").at(-1) ?? "").replace(/^t-/, "");
    const one = known[reference];
    if (typeof one === "number") json({ error: "x" }, one)(response, seen, count);
    else if (one === undefined) json(notFound)(response, seen, count);
    else {
      const data = { ...wireTransaction, id: `t-${reference}`, reference, updated_at: now, ...one };
      json({ success: true, data })(response, seen, count);
    }
  });
  const client = createClient({ baseUrl: service.url, ...keys, clock: testClock() });
  return { t, service, client, handled };
}

describe("reconcile", () => {
  it("runs what had no callback, once, whichever way the result comes first", async () => {
    const { t, client, handled } = await setUp({ a: {}, b: { status: "FAILED" } });
    const byCallback = { referenceId: "a", payTxnId: "t-a", merchantId: wireTransaction.merchant_id };
    await t.deposit(byCallback);

    const report = await reconcile(t.receiver, { client, references: ["a", "b"] });
    await t.advance(0);
    expect(report.counts).toEqual({ duplicate: 1, new: 1 });
    expect(report).toMatchObject({ remaining: [], aborted: false });
    expect(handled).toEqual(["SUCCESS t-a 10.500000 callback", "FAILED t-b 10.5 lookup"]);

    await t.deposit({ ...byCallback, referenceId: "b", payTxnId: "t-b", status: "FAILED" });
    const again = await reconcile(t.receiver, { client, references: ["a", "b"] });
    await t.advance(0);
    expect(again.counts).toEqual({ duplicate: 2 });
    expect(handled).toHaveLength(2);
  });

  it("brings a PENDING transaction forward", async () => {
    const { t, client, handled } = await setUp({ a: {} });
    await t.deposit({
      referenceId: "a",
      payTxnId: "t-a",
      status: "PENDING",
      merchantId: wireTransaction.merchant_id,
    });
    const { results } = await reconcile(t.receiver, { client, references: ["a"] });
    await t.advance(0);
    expect(results).toMatchObject([
      { reference: "a", outcome: "progress", eventId: expect.any(String), transaction: { id: "t-a" } },
    ]);
    expect(handled).toEqual(["PENDING t-a 10.500000 callback", "SUCCESS t-a 10.5 lookup"]);
  });

  it("goes on after an error, and says what is left for the next run", async () => {
    const { t, client } = await setUp({ a: {}, b: 500, c: 401, d: { base_amount: "ten" }, f: {} });
    const references = ["a", "b", "c", "d", "", "missing", "f"];
    const { results, counts, remaining } = await reconcile(t.receiver, {
      client,
      references,
      concurrency: 1,
    });
    expect(results.map(({ outcome }) => outcome)).toEqual([
      "new",
      "error",
      "error",
      "error",
      "error",
      "not-found",
      "new",
    ]);
    const codes = results.flatMap((one) =>
      one.outcome === "error" ? [(one.error as { code: string }).code] : [],
    );
    expect(codes).toEqual(["ERR_SERVER", "ERR_UNAUTHORIZED", "ERR_TRANSACTION_INVALID", "ERR_FIELD_MISSING"]);
    expect(counts).toEqual({ new: 2, error: 4, "not-found": 1 });
    expect(remaining).toEqual(["b", "c", "d", ""]);
  });

  it("reports what the table of the receiver holds", async () => {
    const { t, client } = await setUp({ a: { type: "REFUND" } });
    const { counts } = await reconcile(t.receiver, { client, references: ["a"] });
    expect(counts).toEqual({ held: 1 });
    expect(await t.held()).toMatchObject([{ reason: "unrecognized" }]);
  });

  it("reports cancelled transactions, which are not events, and holds none", async () => {
    const { t, client } = await setUp({ a: { status: "CANCELLED" }, b: {} });
    const { results, counts, remaining } = await reconcile(t.receiver, { client, references: ["a", "b"] });
    expect(counts).toEqual({ cancelled: 1, new: 1 });
    expect(results[0]).toMatchObject({ reference: "a", transaction: { status: "CANCELLED" } });
    expect(await t.held()).toEqual([]);
    expect(remaining).toEqual([]);
  });

  it("looks ids up as well, and says which of them are settled", async () => {
    const old = new Date(0).toISOString();
    const { t, client, service, handled } = await setUp({
      ...{ a: {}, b: { status: "FAILED" }, c: { status: "PENDING" }, d: { status: "CANCELLED" }, e: 401 },
      ...{ f: { updated_at: old }, g: { type: "REFUND" } },
    });
    const ids = ["t-a", "t-b", "t-c", "t-d", "t-e", "t-f", "t-g", "t-h"];
    const { results, settled, remaining } = await reconcile(t.receiver, { client, ids, concurrency: 1 });
    await t.advance(0);
    expect(service.seen.map(({ path }) => path)).toEqual(
      ids.map((id) => `/api/v2/payment/transaction/${id}`),
    );
    expect(results.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual([
      ...["t-a new", "t-b new", "t-c new", "t-d cancelled", "t-e error", "t-f expired", "t-g held"],
      "t-h not-found",
    ]);
    expect(settled).toEqual(["t-a", "t-b", "t-g"]);
    expect(remaining).toEqual(["t-e"]);
    expect(handled).toEqual(["SUCCESS t-a 10.5 lookup", "FAILED t-b 10.5 lookup", "PENDING t-c 10.5 lookup"]);
    const again = await reconcile(t.receiver, { client, ids });
    expect(again.settled.toSorted()).toEqual(settled);
  });

  it("needs references or ids, and one of them only", async () => {
    const { t, client } = await setUp({});
    for (const lists of [{}, { references: [], ids: [] }]) {
      const running = reconcile(t.receiver, { client, ...lists } as unknown as ReconcileOptions);
      await expect(running).rejects.toMatchObject({ code: "ERR_OPTION_INVALID", field: "ids" });
    }
    const one = reconcile(t.receiver, { client, ids: "t-a" });
    await expect(one).rejects.toMatchObject({ code: "ERR_OPTION_INVALID", field: "ids" });
  });

  it("keeps to its concurrency, and reports each result as it comes", async () => {
    const known = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`r${i}`, {}]));
    const { t, client } = await setUp(known);
    let underWay = 0;
    let most = 0;
    const counting: Pick<PaymentsClient, "transactionByReference"> = {
      async transactionByReference(reference, options) {
        most = Math.max(most, ++underWay);
        const found = await client.transactionByReference(reference, options);
        underWay--;
        return found;
      },
    };
    const heard: ReconcileResult[] = [];
    const { results } = await reconcile(t.receiver, {
      client: counting,
      references: new Set(Object.keys(known)),
      concurrency: 3,
      onResult: (result) => void heard.push(result),
    });
    expect(most).toBe(3);
    expect(heard).toEqual(results);
    expect(results).toHaveLength(20);
  });

  it("reads references from a database cursor, one by one", async () => {
    const { t, client } = await setUp({ a: {}, b: {}, c: {} });
    let closed = false;
    async function* cursor() {
      try {
        yield* ["a", "b", "c"];
      } finally {
        closed = true;
      }
    }
    const { counts } = await reconcile(t.receiver, { client, references: cursor() });
    expect(counts).toEqual({ new: 3 });
    expect(closed).toBe(true);
  });

  it("stops when it is aborted, and a further run finishes the rest", async () => {
    const { t, client, service } = await setUp({ a: {}, b: {}, c: {}, d: {} });
    const abort = new AbortController();
    const references = ["a", "b", "c", "d"];
    const first = await reconcile(t.receiver, {
      client,
      references,
      concurrency: 1,
      signal: abort.signal,
      onResult: ({ reference }) => {
        if (reference === "b") abort.abort();
      },
    });
    expect(first).toMatchObject({ aborted: true, counts: { new: 2 }, remaining: ["c", "d"] });
    expect(service.seen).toHaveLength(2);
    const second = await reconcile(t.receiver, { client, references: first.remaining });
    expect(second).toMatchObject({ aborted: false, counts: { new: 2 }, remaining: [] });
  });

  it("gives a look-up that an abort cut off to the next run, not to the errors", async () => {
    const { t } = await setUp({});
    const silent = await startService(() => {});
    const client = createClient({ baseUrl: silent.url, ...keys, clock: testClock() });
    const abort = new AbortController();
    const arrived = silent.arrival();
    async function* cursor() {
      yield "a";
      yield "b";
    }
    const running = reconcile(t.receiver, {
      client,
      references: cursor(),
      concurrency: 1,
      signal: abort.signal,
    });
    await arrived;
    abort.abort();
    expect(await running).toEqual({
      ...{ results: [], counts: {}, settled: [], remaining: ["a"] },
      aborted: true,
    });
  });

  it("ends when it is aborted while an asynchronous source waits for its next reference", async () => {
    const { t, client } = await setUp({ a: {} });
    const abort = new AbortController();
    let isWaiting = (): void => {};
    const waiting = new Promise<void>((resolve) => {
      isWaiting = resolve;
    });
    async function* queue() {
      yield "a";
      isWaiting();
      await new Promise(() => {});
    }
    const running = reconcile(t.receiver, { client, references: queue(), signal: abort.signal });
    await waiting;
    while ((await t.receiver.events.list({ referenceId: "a" })).events.length === 0) await nextTurn();
    abort.abort();
    expect(await running).toMatchObject({ aborted: true, counts: { new: 1 }, remaining: [] });
  });

  it.each([
    ["a list", (texts: string[]) => texts],
    [
      "an asynchronous source",
      async function* (texts: string[]) {
        yield* texts;
      },
    ],
  ])("reports an undefined in %s as an error, and looks the others up", async (_what, asSource) => {
    const { t, client } = await setUp({ a: {}, b: {} });
    const references = asSource(["a", undefined as never, "b"]);
    const { results, counts } = await reconcile(t.receiver, { client, references, concurrency: 1 });
    expect(counts).toEqual({ new: 2, error: 1 });
    expect(results[1]).toMatchObject({ error: { code: "ERR_FIELD_MISSING" } });
  });

  it("leaves an undefined in a list, and those behind it, for the next run after an abort", async () => {
    const { t, client } = await setUp({ a: {} });
    const abort = new AbortController();
    const report = await reconcile(t.receiver, {
      client,
      references: ["a", undefined as never, "b"],
      concurrency: 1,
      signal: abort.signal,
      onResult: () => abort.abort(),
    });
    expect(report.remaining).toEqual([undefined, "b"]);
  });

  it("ends with the error of the source or of onResult, after the look-ups under way", async () => {
    const { t, client } = await setUp({ a: {} });
    async function* broken() {
      yield "a";
      throw new Error("cursor lost");
    }
    const bySource = reconcile(t.receiver, { client, references: broken() });
    expect((await errorOf(bySource)).message).toBe("cursor lost");
    const byListener = reconcile(t.receiver, {
      client,
      references: ["a"],
      onResult: () => Promise.reject(new Error("no disk")),
    });
    expect((await errorOf(byListener)).message).toBe("no disk");
  });

  it.each([{ concurrency: 0 }, { concurrency: 1.5 }, { references: "a" }])(
    "refuses %o",
    async (overrides) => {
      const { t, client } = await setUp({});
      const running = reconcile(t.receiver, { client, references: [], ...overrides });
      await expect(running).rejects.toMatchObject({ code: "ERR_OPTION_INVALID" });
    },
  );
});
