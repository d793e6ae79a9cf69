import { createClient } from "@payhooks/client";
import {
  anyCallbackFields,
  asDelivery,
  type CallbackFields,
  createHarness,
  createTestKeys,
  type Harness,
  resplitPair,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { createSandbox, type Sandbox } from "@payhooks/sandbox";
import { describe, expect, it, onTestFinished } from "vitest";
import { settleAmbiguous } from "./settle-ambiguous.ts";

const keys = createTestKeys();

/** The fields of a callback of a payment that the service has. */
interface Paid extends CallbackFields {
  readonly payTxnId: string;
  readonly referenceId: string;
}

interface SettleFixture {
  readonly t: Harness;
  readonly sandbox: Sandbox;
  /** The statuses that the handlers of payments got. */
  readonly handled: string[];
  /** Makes a payment at the service, and returns the fields of its callback. */
  pay(outcome: "SUCCESS" | "FAILED" | "PENDING", referenceId?: string): Promise<Paid>;
}

/** The real receiver with the recipe, the real client, and the service as the sandbox plays it. Callbacks are sent by the tests. */
async function open({ merchantId }: { merchantId?: string } = {}): Promise<SettleFixture> {
  const sandbox = await createSandbox({ delayMs: 0, merchant: { privateKey: keys.privateKey } });
  onTestFinished(() => sandbox.close());
  const [publicKey, secretKey] = sandbox.keys.apiKey.split(":");
  const client = createClient({ baseUrl: sandbox.url, publicKey, secretKey, attempts: 1 });
  const handled: string[] = [];
  const t = await createHarness({
    keys,
    ...(merchantId !== undefined && {
      receiver: { payments: { publicKey: keys.publicKey, expect: { merchantId } } },
    }),
    register: (receiver) => {
      const note = (e: { status: string; payTxnId: string; referenceId: string; amount: string }) =>
        void handled.push(`${e.status} ${e.payTxnId} ${e.referenceId} ${e.amount}`);
      receiver.onDeposit({ SUCCESS: note, FAILED: note, PENDING: note });
      settleAmbiguous(receiver, client);
    },
  });
  onTestFinished(() => t.close());
  return {
    ...{ t, sandbox, handled },
    async pay(outcome, referenceId = "order-1") {
      const path = outcome === "PENDING" ? [] : [{ status: outcome, callback: false }];
      const { transaction } = sandbox.deposit({
        ...{ reference: referenceId, amount: "10.50", callback_url: "https://shop.example/callbacks/pay" },
        outcome: path,
      });
      await expect.poll(() => sandbox.transactions.get(transaction.id)?.transaction.status).toBe(outcome);
      const { merchantId: paidTo } = sandbox.keys;
      const payTxnId = transaction.id;
      return { payTxnId, referenceId, merchantId: paidTo, amount: "10.500000", status: outcome };
    },
  };
}

/** A callback of the service, and another body that has its signature. */
interface Attack {
  readonly genuine: SignedDelivery;
  readonly forged: SignedDelivery;
}

function attack(genuineFields: CallbackFields, changed: CallbackFields): Attack {
  const genuine = signPaymentCallback(anyCallbackFields(genuineFields), keys.privateKey);
  return { genuine, forged: asDelivery({ ...JSON.parse(genuine.rawBody.toString()), ...changed }) };
}

const failedMadeSuccess = (fields: Paid): Attack =>
  resplitPair("order-7", keys.privateKey, { ...fields, status: "FAILED" });
/** A customer's account name, which the specification does not document, has another amount in it. */
const smallMadeLarge = (fields: Paid): Attack => {
  const callbackUrl = "https://merchant.example/callbacks/pay";
  const start = "https://shop.example/cb?x=";
  return attack(
    { ...fields, callbackUrl, accountName: `Abebe&amount=99999.000000&callbackUrl=${start}` },
    {
      accountName: "Abebe",
      amount: "99999.000000",
      callbackUrl: `${start}&amount=10.500000&callbackUrl=${callbackUrl}`,
    },
  );
};
/** The address of a callback has a whole deposit in it, with an id that the customer chose. */
const withAnotherId = (fields: Paid, payTxnId: string, event = "DEPOSIT"): Attack => {
  const timestamp = new Date().toISOString();
  const callbackUrl = "https://merchant.example/cb?x=1";
  const tail = `&event=DEPOSIT&payTxnId=${payTxnId}&referenceId=order-7&status=SUCCESS&timestamp=${timestamp}&userId=u`;
  const { status, referenceId } = fields;
  const all = {
    ...fields,
    event,
    merchantId: null,
    providerTxId: null,
    message: null,
    referenceId,
    timestamp,
    userId: "v",
  };
  return attack(
    { ...all, callbackUrl: callbackUrl + tail },
    {
      ...{ callbackUrl, event: "DEPOSIT", payTxnId, referenceId: "order-7", status: "SUCCESS" },
      userId: `u&event=${event}&payTxnId=${fields.payTxnId}&referenceId=${referenceId}&status=${status}&timestamp=${timestamp}&userId=v`,
    },
  );
};

const sendings = [
  ["the genuine callback", ({ genuine }: Attack) => [genuine]],
  ["the forged callback", ({ forged }: Attack) => [forged]],
  ["both", ({ genuine, forged }: Attack) => [forged, genuine, forged]],
] as const;

describe.each(sendings)("an ambiguous event is settled by the service: %s", (_, sent) => {
  it("a payment that failed stays failed", async () => {
    const fixture = await open();
    const fields = await fixture.pay("FAILED");
    for (const one of sent(failedMadeSuccess(fields))) await fixture.t.deliver("payments", one);
    await fixture.t.advance("2h");
    expect(fixture.handled).toEqual([`FAILED ${fields.payTxnId} order-1 10.5`]);
    expect(await fixture.t.held()).toEqual([]);
    expect(fixture.t.notices.map(({ type }) => type)).not.toContain("double-risk");
  });

  it("an amount is the one that was paid", async () => {
    const fixture = await open();
    const fields = await fixture.pay("SUCCESS");
    for (const one of sent(smallMadeLarge(fields))) await fixture.t.deliver("payments", one);
    await fixture.t.advance("2h");
    expect(fixture.handled).toEqual([`SUCCESS ${fields.payTxnId} order-1 10.5`]);
    expect(await fixture.t.held()).toEqual([]);
  });

  it("a payment whose reference only looks odd is credited once", async () => {
    const fixture = await open();
    const referenceId = `order-7&status=FAILED&timestamp=${new Date().toISOString()}&userId=u`;
    const fields = await fixture.pay("SUCCESS", referenceId);
    for (const one of sent(attack(fields, {}))) await fixture.t.deliver("payments", one);
    await fixture.t.advance("2h");
    expect(fixture.handled).toEqual([`SUCCESS ${fields.payTxnId} ${referenceId} 10.5`]);
    expect(await fixture.t.held()).toEqual([]);
  });

  it("nothing is believed of a transaction that the service does not know, and the event stays held", async () => {
    const fixture = await open();
    const fields = await fixture.pay("FAILED");
    for (const one of sent(withAnotherId(fields, "made-up"))) await fixture.t.deliver("payments", one);
    await fixture.t.advance("24h");
    expect(fixture.handled).toEqual([`FAILED ${fields.payTxnId} order-1 10.5`]);
    expect(await fixture.t.held()).toMatchObject([{ reason: "ambiguous" }]);
  });

  it("another transaction of the merchant that the customer names is what the service says it is", async () => {
    const fixture = await open();
    const fields = await fixture.pay("FAILED");
    const other = await fixture.pay("SUCCESS", "order-2");
    for (const one of sent(withAnotherId(fields, other.payTxnId))) await fixture.t.deliver("payments", one);
    await fixture.t.advance("2h");
    expect(fixture.handled.toSorted()).toEqual([
      `FAILED ${fields.payTxnId} order-1 10.5`,
      `SUCCESS ${other.payTxnId} order-2 10.5`,
    ]);
    expect(await fixture.t.held()).toEqual([]);
  });

  it("a callback that the service writes in an undocumented way stays held: the true id may be no candidate", async () => {
    const fixture = await open();
    const fields = await fixture.pay("FAILED");
    const other = await fixture.pay("SUCCESS", "order-2");
    const { genuine, forged } = withAnotherId(fields, other.payTxnId, "reversal");
    for (const one of sent({ genuine, forged })) await fixture.t.deliver("payments", one);
    await fixture.t.advance("2h");
    expect(fixture.handled).toEqual([]);
    expect(await fixture.t.held()).toMatchObject([{ reason: "ambiguous" }]);
  });

  it("another merchant's transaction is refused, and the event stays held", async () => {
    const fixture = await open({ merchantId: "m-1" });
    const fields = await fixture.pay("SUCCESS");
    const merchantId = "m-1";
    for (const one of sent(failedMadeSuccess({ ...fields, merchantId })))
      await fixture.t.deliver("payments", one);
    await fixture.t.advance("24h");
    expect(fixture.handled).toEqual([]);
    expect(await fixture.t.held()).toMatchObject([{ reason: "ambiguous" }]);
  });

  it("the event stays held while the service cannot be reached, or knows no end, and is tried again", async () => {
    const fixture = await open();
    fixture.sandbox.faults.add({ kind: "api-reset", times: 2 });
    const fields = await fixture.pay("PENDING");
    for (const one of sent(failedMadeSuccess(fields))) await fixture.t.deliver("payments", one);
    expect(fixture.handled).toEqual([]);
    await fixture.t.advance("10s");
    expect(fixture.handled).toEqual([`PENDING ${fields.payTxnId} order-1 10.5`]);
    expect(await fixture.t.held()).toMatchObject([{ reason: "ambiguous" }]);
    fixture.sandbox.transactions.setStatus(fields.payTxnId, "FAILED", { callback: false });
    await fixture.t.advance("2h");
    expect(fixture.handled.slice(1)).toEqual([`FAILED ${fields.payTxnId} order-1 10.5`]);
    expect(await fixture.t.held()).toEqual([]);
  });
});

describe("an event that is held for another reason", () => {
  it("is left to a person", async () => {
    const fixture = await open();
    const fields = anyCallbackFields({ ...(await fixture.pay("SUCCESS")), event: "REFUND" });
    await fixture.t.deliver("payments", signPaymentCallback(fields, keys.privateKey));
    await fixture.t.advance("2h");
    expect(fixture.handled).toEqual([]);
    expect(await fixture.t.held()).toMatchObject([{ reason: "unrecognized" }]);
  });
});
