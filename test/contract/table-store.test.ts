import { PGlite } from "@electric-sql/pglite";
import { createReceiver } from "@payhooks/core";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { type StoreFixture, storeContract } from "@payhooks/core/testing/store";
import { afterAll, describe, expect, it } from "vitest";
import { tableInbox, tableStore } from "./table-store.ts";

const database = new PGlite();
afterAll(() => database.close());

let fixtures = 0;

/** A schema of its own, on a clock that is moved by hand. */
function makeFixture(): StoreFixture {
  const schema = `fixture_${++fixtures}`;
  let now = Date.now();
  return {
    connect: () => tableStore(database, { schema, now: () => now }),
    async advance(ms) {
      now += ms;
    },
    async close() {
      await database.exec(`DROP SCHEMA ${schema} CASCADE`);
    },
  };
}

describe("the table store keeps the contract", () => {
  for (const { name, run } of storeContract(makeFixture, { oldestOfAll: true, listsFinished: true }))
    it(name, run, 60_000);
});

it("the store is an inbox: an event that comes twice is run once", async () => {
  const { publicKey, privateKey } = createTestKeys();
  const receiver = createReceiver({ payments: { publicKey }, inbox: tableInbox(database) });
  const ran: string[] = [];
  receiver.onDeposit(({ payTxnId }) => void ran.push(payTxnId)).ignore("WITHDRAWAL");
  await receiver.start();
  const fields = callbackFields();
  const { rawBody, headers } = signPaymentCallback(fields, privateKey);
  const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
  const answers = [await receiver.payments.receive(delivery), await receiver.payments.receive(delivery)];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(await receiver.close({ graceMs: 10_000 })).toEqual({ unfinished: 0 });
  expect(ran).toEqual([fields.payTxnId]);
});
