import { createInbox, type Inbox, memoryStore, type RecordStore } from "@payhooks/core/inbox";
import type { CallbackFields, FakeClock, SignedDelivery } from "@payhooks/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { closeMerchants, type MerchantServer, startMerchant } from "./merchant-server.ts";

afterEach(closeMerchants);

const KNOWN = { payTxnId: "t-1", referenceId: "o-1" };

/** Sends deliveries one after the other, each once the one before has come to rest, and tells what became of them. */
async function outcomes(
  t: MerchantServer,
  flow: "payments" | "connect",
  deliveries: readonly SignedDelivery[],
): Promise<string[]> {
  const told: string[] = [];
  for (const delivery of deliveries) {
    const from = t.notices.length;
    const { status } = await t.send(flow, delivery);
    const settled = ["finished", "duplicate", "stale", "held", "refused"];
    const news = () => t.notices.slice(from).find(({ type }) => settled.includes(type));
    await t.until(() => news() !== undefined);
    const notice = news();
    told.push(`${status} ${notice?.type}${notice?.type === "held" ? ` ${notice.reason}` : ""}`);
  }
  return told;
}

interface Ran {
  readonly t: MerchantServer;
  readonly runs: string[];
}

async function start(inbox?: (clock: FakeClock) => Inbox): Promise<Ran> {
  const runs: string[] = [];
  const record = async (
    event: { status: string; amount: string },
    { previousStatus, previousAmount }: { previousStatus: string | null; previousAmount: string | null },
  ): Promise<void> => void runs.push([event.status, event.amount, previousStatus, previousAmount].join(" "));
  const note = async (event: { event: string; idempotency_key: string }): Promise<void> =>
    void runs.push(`${event.event} ${event.idempotency_key}`);
  const t = await startMerchant({
    receiver: (clock) => (inbox === undefined ? {} : { inbox: inbox(clock) }),
    register: (receiver) =>
      receiver
        .onDeposit({ SUCCESS: record, FAILED: record, PENDING: record })
        .onWithdrawal({ SUCCESS: record, FAILED: record, PENDING: record })
        .onSettlementApproved(note)
        .onSettlementDeclined(note)
        .onConnectedAccountApproved(note)
        .onConnectedAccountDeclined(note),
  });
  return { t, runs };
}

/** An inbox whose first write is made, but whose answer is lost: nobody knows by then whether the event is stored. */
function losingAnAnswer(clock: FakeClock): Inbox {
  const store = memoryStore({ clock, maxRecords: 1_000, maxUnfinished: 1_000 });
  let isLost = false;
  const losing: RecordStore = {
    ...store,
    immediate: false,
    swap(items) {
      const results = store.swap(items);
      if (isLost) return results;
      isLost = true;
      throw new Error("the answer is lost");
    },
  };
  return createInbox(losing, { clock });
}

/** Moves the clock on until the promise has settled. */
async function whileTimePasses<T>(t: MerchantServer, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = promise.finally(() => {
    isSettled = true;
  });
  while (!isSettled) await t.clock.advance("10ms");
  return settled;
}

describe("payment callbacks: one handler run per status, whatever arrives how often", () => {
  const rows: readonly [
    row: string,
    sent: readonly CallbackFields[],
    answers: readonly string[],
    runs: readonly string[],
  ][] = [
    ["new", [{}], ["200 finished"], ["SUCCESS 10.500000  "]],
    ["duplicate", [{}, {}, {}], ["200 finished", "200 duplicate", "200 duplicate"], ["SUCCESS 10.500000  "]],
    [
      "duplicate, with what may change between attempts changed",
      [
        {},
        {
          message: "again",
          providerTxId: "MP-2",
          userId: "u-2",
          callbackUrl: "https://merchant.example/other",
          amount: "10.5",
        },
      ],
      ["200 finished", "200 duplicate"],
      ["SUCCESS 10.500000  "],
    ],
    [
      "progress",
      [{ status: "PENDING" }, { status: "PENDING" }, { status: "SUCCESS" }, { status: "SUCCESS" }],
      ["200 finished", "200 duplicate", "200 finished", "200 duplicate"],
      ["PENDING 10.500000  ", "SUCCESS 10.500000 PENDING "],
    ],
    [
      "progress to FAILED, with an amount that changed",
      [{ status: "PENDING" }, { status: "FAILED", amount: "11.000000" }],
      ["200 finished", "200 finished"],
      ["PENDING 10.500000  ", "FAILED 11.000000 PENDING 10.500000"],
    ],
    [
      "stale",
      [{}, { status: "PENDING" }, { status: "PENDING" }],
      ["200 finished", "200 stale", "200 stale"],
      ["SUCCESS 10.500000  "],
    ],
    [
      "conflict",
      [{}, { status: "FAILED" }, { status: "FAILED" }, {}],
      ["200 finished", "200 held conflict", "200 duplicate", "200 duplicate"],
      ["SUCCESS 10.500000  "],
    ],
    [
      "mismatch of fixed facts, once per distinct facts",
      [{}, { referenceId: "o-2" }, { referenceId: "o-2" }, { event: "WITHDRAWAL" }, { merchantId: "m-2" }],
      ["200 finished", "200 held mismatch", "200 duplicate", "200 held mismatch", "200 held mismatch"],
      ["SUCCESS 10.500000  "],
    ],
    [
      "a fixed fact that is absent is not compared",
      [{}, { merchantId: null }],
      ["200 finished", "200 duplicate"],
      ["SUCCESS 10.500000  "],
    ],
    [
      "mismatch of the amount",
      [{}, { amount: "10.600000" }, { amount: "10.600000" }, { amount: "10.700000" }],
      ["200 finished", "200 held mismatch", "200 duplicate", "200 held mismatch"],
      ["SUCCESS 10.500000  "],
    ],
    [
      "another status that is not listed touches nothing",
      [{ status: "REVERSED" }, { status: "PENDING" }, { status: "REVERSED" }, { status: "SUCCESS" }],
      ["200 held unrecognized", "200 finished", "200 duplicate", "200 finished"],
      ["PENDING 10.500000  ", "SUCCESS 10.500000 PENDING "],
    ],
  ];

  it.each(rows)("%s", async (_row, sent, answers, runs) => {
    const ran = await start();
    const deliveries = sent.map((fields) => ran.t.callback({ ...KNOWN, ...fields }));
    expect(await outcomes(ran.t, "payments", deliveries)).toEqual(answers);
    expect(ran.runs).toEqual(runs);
    const held = answers.filter((answer) => answer.includes("held")).map((answer) => answer.split(" ")[2]);
    expect((await ran.t.held()).map(({ reason }) => reason).sort()).toEqual(held.sort());
  });

  it("runs an event once whose answer from the store was lost", async () => {
    const { t, runs } = await start(losingAnAnswer);
    const delivery = t.callback(KNOWN);
    expect(await whileTimePasses(t, outcomes(t, "payments", [delivery]))).toEqual(["200 finished"]);
    expect(await outcomes(t, "payments", [delivery])).toEqual(["200 duplicate"]);
    expect(runs).toEqual(["SUCCESS 10.500000  "]);
    expect(t.notices.filter(({ type }) => type === "double-risk")).toEqual([]);
  });

  it("holds an event once whose answer from the store was lost", async () => {
    const { t, runs } = await start(losingAnAnswer);
    const odd = t.callback({ ...KNOWN, event: "REFUND" });
    expect(await whileTimePasses(t, outcomes(t, "payments", [odd]))).toEqual(["200 held unrecognized"]);
    expect(await outcomes(t, "payments", [odd, odd])).toEqual(["200 duplicate", "200 duplicate"]);
    expect(await t.held()).toMatchObject([{ reason: "unrecognized" }]);
    expect(runs).toEqual([]);
  });
});

describe("connected-account webhooks: one handler run per idempotency_key", () => {
  const data = {
    object: "settlement",
    id: "wd_1",
    connected_account_id: "cm_1",
    amount: 125_000,
    status: "approved",
  };
  const KEY = { idempotency_key: "evt_1", data };

  it("new, and copies", async () => {
    const { t, runs } = await start();
    const delivery = t.webhook("settlement.approved", KEY);
    expect(await outcomes(t, "connect", [delivery, delivery, t.webhook("settlement.approved", KEY)])).toEqual(
      ["200 finished", "200 duplicate", "200 duplicate"],
    );
    expect(runs).toEqual(["settlement.approved evt_1"]);
    expect(await t.held()).toEqual([]);
  });

  it.each([
    ["event", "settlement.declined", {}],
    ["id", "settlement.approved", { data: { ...data, id: "wd_2" } }],
    ["status", "settlement.approved", { data: { ...data, status: "declined" } }],
    ["amount", "settlement.approved", { data: { ...data, amount: 125_001 } }],
  ])("the same key with another %s is a mismatch, held once", async (_fact, event, changed) => {
    const { t, runs } = await start();
    const other = t.webhook(event, { ...KEY, ...changed });
    expect(await outcomes(t, "connect", [t.webhook("settlement.approved", KEY), other, other])).toEqual([
      "200 finished",
      "200 held mismatch",
      "200 duplicate",
    ]);
    expect(runs).toEqual(["settlement.approved evt_1"]);
    expect(await t.held()).toMatchObject([{ reason: "mismatch" }]);
  });

  it("another key is another event. If it was signed at the same time, which of the two counts is for a person to say", async () => {
    const { t, runs } = await start();
    const at = (ms: number): string => new Date(Date.now() - 60_000 + ms).toISOString();
    const [first, second] = [at(0), at(1)];
    const sent = Object.entries({ evt_1: first, evt_2: second, evt_3: second }).map(([key, occurred_at]) =>
      t.webhook("settlement.approved", { ...KEY, idempotency_key: key, occurred_at }),
    );
    expect(await outcomes(t, "connect", sent)).toEqual(["200 finished", "200 finished", "200 held conflict"]);
    expect(runs).toEqual(["settlement.approved evt_1", "settlement.approved evt_2"]);
  });

  it("the two flows share no record: the same id in both is two events", async () => {
    const { t, runs } = await start();
    expect(await outcomes(t, "payments", [t.callback({ ...KNOWN, payTxnId: "same" })])).toEqual([
      "200 finished",
    ]);
    const webhook = t.webhook("settlement.approved", { ...KEY, idempotency_key: "same" });
    expect(await outcomes(t, "connect", [webhook])).toEqual(["200 finished"]);
    expect(runs).toEqual(["SUCCESS 10.500000  ", "settlement.approved same"]);
  });
});
