import type { AmbiguousCallback, PaymentEvent } from "@payhooks/core";
import { createHarness, createTestKeys, resplitPair } from "@payhooks/core/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { confirmWithLookup, createClient } from "../src/index.ts";
import { keys, notFound, wireTransaction } from "./fixtures.ts";
import { json, startService, testClock } from "./service.ts";

const testKeys = createTestKeys();
const merchantId = wireTransaction.merchant_id;
const callbackUrl = wireTransaction.callback_url;

/** A client of a service that knows these transactions by id, or answers with a status. */
async function serviceWith(known: Readonly<Record<string, object>> | number) {
  const state = { known };
  const service = await startService((response, seen, count) => {
    if (typeof state.known === "number") return json({}, state.known)(response, seen, count);
    const id = decodeURIComponent(seen.path.split("/").at(-1) ?? "");
    const one = state.known[id];
    const data = { ...wireTransaction, id, ...one };
    return json(one === undefined ? notFound : { success: true, data })(response, seen, count);
  });
  return {
    state,
    service,
    client: createClient({ baseUrl: service.url, ...keys, clock: testClock(), attempts: 1 }),
  };
}

/** A real receiver that asks the service about ambiguous callbacks. */
async function receiverWith(known: Readonly<Record<string, object>> | number) {
  const { state, service, client } = await serviceWith(known);
  const handled: PaymentEvent[] = [];
  const t = await createHarness({
    keys: testKeys,
    receiver: { payments: { publicKey: testKeys.publicKey, confirm: confirmWithLookup(client) } },
    register: (receiver) => {
      const take = async (event: PaymentEvent) => void handled.push(event);
      receiver.onDeposit({ SUCCESS: take, FAILED: take, PENDING: take });
      receiver.ignore("WITHDRAWAL");
    },
  });
  onTestFinished(() => t.close());
  return { t, state, service, handled };
}

/** A FAILED deposit of a customer who chose its reference so that its signature fits a SUCCESS for order-7. */
function attack() {
  const pair = resplitPair("order-7", testKeys.privateKey, {
    payTxnId: "t-1",
    amount: "10.500000",
    merchantId,
    callbackUrl,
  });
  const { referenceId } = JSON.parse(Buffer.from(pair.genuine.rawBody).toString("utf8")) as {
    referenceId: string;
  };
  return { ...pair, referenceId };
}

describe("confirmWithLookup, in a real receiver,", () => {
  it("runs what the service says really happened, whichever of the two bodies arrives", async () => {
    for (const which of ["genuine", "forged"] as const) {
      const { referenceId, ...bodies } = attack();
      const { t, handled } = await receiverWith({ "t-1": { reference: referenceId, status: "FAILED" } });
      expect((await t.deliver("payments", bodies[which])).status).toBe(200);
      await t.advance("1s");
      expect(handled).toMatchObject([
        { payTxnId: "t-1", referenceId, status: "FAILED", amount: "10.500000" },
      ]);
      expect(await t.held()).toEqual([]);
    }
  });

  it("keeps the entry held when the service recorded another callback URL than any reading has, and believes without one", async () => {
    const { referenceId, genuine } = attack();
    const known = { reference: referenceId, status: "FAILED" };
    const other = await receiverWith({ "t-1": { ...known, callback_url: `${callbackUrl}&message=` } });
    await other.t.deliver("payments", genuine);
    await other.t.advance("1s");
    expect([other.handled, (await other.t.held()).length]).toEqual([[], 1]);
    const none = await receiverWith({ "t-1": { ...known, callback_url: null } });
    await none.t.deliver("payments", genuine);
    await none.t.advance("1s");
    expect(none.handled).toMatchObject([{ status: "FAILED" }]);
  });

  it("keeps the entry held when the service does not know the transaction, or says otherwise", async () => {
    const { referenceId, forged } = attack();
    const answers = [
      {},
      { "t-1": { reference: referenceId, status: "CANCELLED" } },
      { "t-1": { reference: referenceId, status: "FAILED", base_amount: 10.51 } },
      { "t-1": { reference: referenceId, status: "FAILED", type: "WITHDRAWAL" } },
      { "t-1": { reference: referenceId, status: "FAILED", merchant_id: "someone-else" } },
      { "t-1": { reference: "order-8", status: "SUCCESS" } },
    ];
    for (const known of answers) {
      const { t, handled, service } = await receiverWith(known);
      await t.deliver("payments", forged);
      await t.advance("1s");
      expect(service.seen.map(({ path }) => path)).toContain("/api/v2/payment/transaction/t-1");
      expect(handled).toEqual([]);
      expect(await t.held()).toMatchObject([{ reason: "ambiguous" }]);
    }
  });

  it("asks again while the service is out of reach or still says PENDING, and then decides", async () => {
    const { referenceId, forged } = attack();
    const { t, state, service, handled } = await receiverWith(500);
    await t.deliver("payments", forged);
    await t.advance("1s");
    state.known = { "t-1": { reference: referenceId, status: "PENDING" } };
    await t.advance("10s");
    expect(handled).toEqual([]);
    expect(await t.held()).toMatchObject([{ reason: "ambiguous" }]);
    const asked = service.seen.length;
    expect(asked).toBeGreaterThan(1);
    state.known = { "t-1": { reference: referenceId, status: "FAILED" } };
    await t.advance("1m");
    expect(handled).toMatchObject([{ referenceId, status: "FAILED" }]);
    expect(await t.held()).toEqual([]);
  });
});

/** A genuine callback whose signature fits more events than are offered: each pair in its referenceId may be a field. */
const MANY_READINGS = `A${["d", "s", "sa", "sb", "sc", "sd", "se", "sf", "sg"].map((name) => `&${name}=1`).join("")}`;

describe("confirmWithLookup, in a real receiver, about more readings than are offered,", () => {
  it("keeps the entry held, even where the service knows one of them", async () => {
    const { t, handled, service } = await receiverWith({ "t-1": { reference: MANY_READINGS } });
    const fields = { payTxnId: "t-1", amount: "10.500000", merchantId, callbackUrl };
    await t.deposit({ ...fields, referenceId: MANY_READINGS });
    await t.advance("1s");
    expect(handled).toEqual([]);
    expect(service.seen).toEqual([]);
    expect(await t.held()).toMatchObject([
      { reason: "ambiguous", detail: expect.stringContaining("referenceId") },
    ]);
  });
});

describe("confirmWithLookup", () => {
  const reading: PaymentEvent = {
    event: "DEPOSIT",
    status: "SUCCESS",
    referenceId: "order-1",
    payTxnId: "t-1",
    amount: "10.500000",
    callbackUrl,
    message: "Payment completed",
    providerTxId: "MP-1",
    timestamp: "2026-05-01T11:01:00.123456789Z",
    merchantId,
    userId: "user-1",
    extra: {},
    source: "callback",
  };
  const question = (...readings: PaymentEvent[]): AmbiguousCallback => ({
    readings,
    complete: true,
    detail: "",
    tenant: "shop",
  });

  it("returns the confirmed reading as it is", async () => {
    const { client } = await serviceWith({ "t-1": {} });
    const other: PaymentEvent = { ...reading, status: "FAILED" };
    expect(await confirmWithLookup(client)(question(other, reading))).toEqual(reading);
  });

  it("leaves out optional fields about which confirmed readings differ", async () => {
    const { client } = await serviceWith({ "t-1": {} });
    const other = { ...reading, userId: "user-1&x=1", message: "Payment" };
    const { userId: _, message: __, ...rest } = reading;
    expect(await confirmWithLookup(client)(question(reading, other))).toEqual(rest);
  });

  it("keeps, and asks nobody, when there are more readings than it was given", async () => {
    const { client, service } = await serviceWith({ "t-1": {} });
    const others = Array.from(
      { length: 7 },
      (_, i): PaymentEvent => ({ ...reading, referenceId: `other-${i}` }),
    );
    const asked = question(reading, ...others);
    expect(await confirmWithLookup(client)({ ...asked, complete: false })).toBe("keep");
    expect(service.seen).toEqual([]);
    // As many that are all there are: one of them is true, with all its fields.
    expect(await confirmWithLookup(client)(asked)).toEqual(reading);
  });

  it("keeps when confirmed readings differ in their time", async () => {
    const { client } = await serviceWith({ "t-1": {} });
    const other = { ...reading, timestamp: "2026-05-01T11:01:01Z" };
    expect(await confirmWithLookup(client)(question(reading, other))).toBe("keep");
  });

  it("tells readings apart by the recorded callback address, where that is all they differ in", async () => {
    const { client } = await serviceWith({ "t-1": {} });
    const other = { ...reading, callbackUrl: `${callbackUrl}&event=x` };
    expect(await confirmWithLookup(client)(question(other, reading))).toEqual(reading);
    const third = { ...reading, callbackUrl: `${callbackUrl}&event=y` };
    expect(await confirmWithLookup(client)(question(other, third))).toBe("keep");
  });

  it("keeps when there is no reading, or an id that cannot be one", async () => {
    const { client, service } = await serviceWith({});
    expect(await confirmWithLookup(client)(question())).toBe("keep");
    expect(await confirmWithLookup(client)(question({ ...reading, payTxnId: ".." }))).toBe("keep");
    expect(service.seen).toEqual([]);
  });

  it("looks up each id once", async () => {
    const { client, service } = await serviceWith({ "t-1": {} });
    await confirmWithLookup(client)(
      question(reading, { ...reading, status: "FAILED" }, { ...reading, payTxnId: "t-2" }),
    );
    expect(service.seen.map(({ path }) => path.split("/").at(-1)).sort()).toEqual(["t-1", "t-2"]);
  });

  it("throws when the service is out of reach, so that the receiver asks again", async () => {
    const { client } = await serviceWith(401);
    await expect(confirmWithLookup(client)(question(reading))).rejects.toMatchObject({
      code: "ERR_UNAUTHORIZED",
    });
  });

  it("takes the client of the tenant", async () => {
    const { client } = await serviceWith({ "t-1": {} });
    const confirm = confirmWithLookup(async (tenant) => (tenant === "shop" ? client : null));
    expect(await confirm(question(reading))).toEqual(reading);
    expect(await confirm({ ...question(reading), tenant: "other" })).toBe("keep");
  });

  it("takes 404 for: there is no such transaction, so that a made-up id is not in the way", async () => {
    const { client } = await serviceWith(404);
    const reading = { payTxnId: "made-up", referenceId: "order-7" } as PaymentEvent;
    const callback: AmbiguousCallback = {
      readings: [reading],
      complete: true,
      detail: "payTxnId",
      tenant: "",
    };
    expect(await confirmWithLookup(client)(callback)).toBe("keep");
  });
});
