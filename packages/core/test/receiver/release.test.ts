import { type LookupTransaction, memoryInbox, type PaymentEvent, serviceNames } from "@payhooks/core";
import {
  anyCallbackFields,
  asDelivery,
  type CallbackFields,
  callbackFields,
  createTestKeys,
  fakeClock,
  type SignedDelivery,
  signPaymentCallback,
} from "@payhooks/core/testing";
import { describe, expect, it } from "vitest";
import { codeOfReply, rejectedBy, type Setup, setUp, signatureOf } from "../receiving.ts";

const { publicKey, privateKey } = createTestKeys();
const BY = { by: "an operator", note: "asked the service" };
const sign = (fields: CallbackFields): SignedDelivery => signPaymentCallback(fields, privateKey);
/** The same signature under another body. */
const respelt = (sent: SignedDelivery, fields: CallbackFields): SignedDelivery =>
  asDelivery({ ...fields, signature: signatureOf(sent) });
const idsOf = ({ ran }: Setup): readonly string[] => ran.map((event) => (event as PaymentEvent).payTxnId);
const onlyEntry = async (t: Setup): Promise<string> => {
  const [entry, ...others] = await t.held();
  expect(others).toEqual([]);
  return entry?.eventId ?? "";
};
async function replay(t: Setup, decision: { readonly evenIfExpired?: boolean } = {}): Promise<void> {
  await t.receiver.events.replay(await onlyEntry(t), { ...BY, ...decision });
  for (let turn = 0; turn < 4; turn++) await t.receiver.work();
  // Notices are told off the path.
  await new Promise((resolve) => setImmediate(resolve));
}

/** A callback with two readings: its reference may be "order-10", with an undocumented `size` behind it. */
const twofold = (now: number): CallbackFields =>
  callbackFields({ payTxnId: "txn-10", referenceId: "order-10&size=L" }, now);

describe("an old callback", () => {
  it("runs once, however its body is spelt", async () => {
    const t = await setUp({ payments: { publicKey } });
    const { message, ...fields } = callbackFields({ payTxnId: "txn-1", message: "ok" }, t.clock.now());
    const genuine = sign({ ...fields, message });
    const other = respelt(genuine, { ...fields, merchantId: `${fields.merchantId}&message=ok` });
    for (const sent of [genuine, other]) expect((await t.post("payments", sent)).status).toBe(200);
    for (const day of [30, 60, 90]) {
      await t.clock.advance("30d");
      for (const sent of [genuine, other]) {
        const reply = await t.post("payments", sent);
        expect([reply.status, codeOfReply(reply)], `day ${day}`).toEqual([400, "ERR_TIMESTAMP_EXPIRED"]);
      }
    }
    expect(idsOf(t)).toEqual(["txn-1"]);
    expect(await t.held()).toEqual([]);
  });

  it("with two readings is refused, even after a person has decided about it", async () => {
    const t = await setUp({ payments: { publicKey } });
    const sent = sign(twofold(t.clock.now()));
    expect((await t.post("payments", sent)).status).toBe(200);
    await t.receiver.events.discard(await onlyEntry(t), BY);
    for (let month = 0; month < 3; month++) {
      await t.clock.advance("30d");
      expect(codeOfReply(await t.post("payments", sent))).toBe("ERR_TIMESTAMP_EXPIRED");
    }
    expect([t.ran, await t.held()]).toEqual([[], []]);
  });

  it.each([
    ["two readings", { referenceId: "order-10&size=L" }],
    ["no reading", { amount: "ten" }],
  ])("takes no room among the held events, with %s", async (_, fields) => {
    const t = await setUp({ payments: { publicKey } });
    const old = callbackFields(fields, t.clock.now() - 400 * 86_400_000);
    expect((await t.post("payments", sign(old))).status).toBe(400);
    expect(await t.held()).toEqual([]);
  });

  it("whose time cannot be read is held, since it may be new: as one entry, however its body is spelt", async () => {
    const t = await setUp({ payments: { publicKey } });
    const { message, ...fields } = callbackFields({ timestamp: "yesterday", message: "ok" });
    const genuine = sign({ ...fields, message });
    const other = respelt(genuine, { ...fields, merchantId: `${fields.merchantId}&message=ok` });
    for (const sent of [genuine, other, genuine]) expect((await t.post("payments", sent)).status).toBe(200);
    expect(await t.held()).toMatchObject([{ reason: "malformed" }]);
    await t.clock.advance("30d");
    expect((await t.post("payments", other)).status).toBe(200);
    expect(await t.held()).toHaveLength(1);
  });

  it("is refused also if it was signed in the first millisecond of 1970", async () => {
    const t = await setUp({ payments: { publicKey } });
    for (const timestamp of [
      "1970-01-01T00:00:00Z",
      "1970-01-01T00:00:00.000999999Z",
      "1969-12-31T23:59:59Z",
    ]) {
      const reply = await t.post("payments", sign(callbackFields({ timestamp })));
      expect([reply.status, codeOfReply(reply)], timestamp).toEqual([400, "ERR_TIMESTAMP_EXPIRED"]);
    }
    expect(t.ran).toEqual([]);
  });
});

describe("an entry that waits longer than the window", () => {
  it("stays held although its URL is expected now, until a replay says evenIfExpired", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock });
    const early = await setUp(
      { payments: { publicKey, expect: { callbackUrl: "https://m.example/a" } }, inbox },
      clock,
    );
    const sent = sign(callbackFields({ payTxnId: "txn-2", callbackUrl: "https://m.example/b" }, clock.now()));
    await early.post("payments", sent);
    expect(await early.held()).toMatchObject([{ reason: "unexpected" }]);
    await clock.advance("60d");
    const late = await setUp({ payments: { publicKey }, inbox }, clock);
    await replay(late);
    expect(late.ran).toEqual([]);
    expect(await late.held()).toMatchObject([
      { reason: "unexpected", detail: expect.stringContaining("evenIfExpired") },
    ]);
    await replay(late, { evenIfExpired: true });
    expect(idsOf(late)).toEqual(["txn-2"]);
  });
});

describe("a held callback that came in two spellings", () => {
  it.each(["genuine", "re-spelt"])(
    "runs once when the field is declared: the %s one first",
    async (first) => {
      const clock = fakeClock();
      const inbox = memoryInbox({ clock });
      const fields = anyCallbackFields(
        { payTxnId: "txn-3", merchantId: "m-1", message: "ok", size: "L" },
        clock.now(),
      );
      const { message: _, ...others } = fields;
      const genuine = sign(fields);
      const other = respelt(genuine, { ...others, merchantId: "m-1&message=ok" });
      const before = await setUp({ payments: { publicKey }, inbox }, clock);
      for (const sent of first === "genuine" ? [genuine, other] : [other, genuine])
        await before.post("payments", sent);
      expect(before.ran).toEqual([]);
      const after = await setUp(
        { payments: { publicKey }, names: serviceNames({ callback: { extra: { size: "always" } } }), inbox },
        clock,
      );
      await replay(after);
      expect(after.ran).toMatchObject([
        { payTxnId: "txn-3", merchantId: "m-1", message: "ok", extra: { size: "L" } },
      ]);
      expect(await after.held()).toEqual([]);
    },
  );
});

describe("ingest", () => {
  const transaction: LookupTransaction = {
    id: "txn-4",
    reference: "order-4",
    type: "DEPOSIT",
    status: "SUCCESS",
    base_amount: "10.5",
    callback_url: "https://m.example/cb",
    updated_at: new Date().toISOString(),
    merchant_id: "m-1",
  };

  it("is refused without a tenant if a resolver names tenants, since the event would run beside its callback", async () => {
    const t = await setUp({ payments: { publicKey: () => ({ tenant: "m-1", keys: publicKey }) } });
    for (const options of [undefined, {}, { tenant: "" }]) {
      const error = await rejectedBy(t.receiver.payments.ingest(transaction, options));
      expect(error).toMatchObject({ code: "ERR_OPTION_MISSING", fix: expect.stringContaining("{ tenant }") });
    }
    await t.receiver.payments.ingest(transaction, { tenant: "m-1" });
    await t.receiver.work();
    expect(idsOf(t)).toEqual(["txn-4"]);
  });

  it("is refused with a tenant if there are no tenants", async () => {
    const t = await setUp({ payments: { publicKey } });
    const error = await rejectedBy(t.receiver.payments.ingest(transaction, { tenant: "m-1" }));
    expect(error.code).toBe("ERR_OPTION_INVALID");
    expect(t.ran).toEqual([]);
  });
});

describe("oneSuccessPerReference in memory", () => {
  it("forgets no claim: if there is no room for a further one, the service is told to send again", async () => {
    const clock = fakeClock();
    const inbox = memoryInbox({ clock, maxRecords: 5 });
    const t = await setUp({ payments: { publicKey, oneSuccessPerReference: true }, inbox }, clock);
    const send = async (payTxnId: string, referenceId: string) => {
      await clock.advance("1s");
      return t.post("payments", sign(callbackFields({ payTxnId, referenceId }, clock.now())));
    };
    for (const id of ["a", "b", "c", "d", "e"]) expect((await send(id, `order-${id}`)).status).toBe(200);
    expect(codeOfReply(await send("f", "order-f"))).toBe("ERR_INBOX_FULL");
    // A second SUCCESS for a known reference needs no room.
    expect((await send("z", "order-a")).status).toBe(200);
    expect(await t.held()).toMatchObject([{ reason: "reference-reused" }]);
    expect(idsOf(t)).toEqual(["a", "b", "c", "d", "e"]);
    await clock.advance("9d");
    expect((await send("f", "order-f")).status).toBe(200);
    expect(idsOf(t)).toEqual(["a", "b", "c", "d", "e", "f"]);
  });
});
