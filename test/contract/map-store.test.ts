import { createReceiver } from "@payhooks/core";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { expect, it } from "vitest";
import { mapInbox, mapStore } from "./map-store.ts";
import { storeContract } from "./store-contract.ts";
import type { StoreGround } from "./store-ground.ts";

/** One map that every process of the suite sees, on a clock that is moved by hand. */
function mapStoreGround(): StoreGround {
  let now = Date.now();
  const store = mapStore(() => now);
  return {
    connect: () => store,
    async advance(ms) {
      now += ms;
    },
    close: async () => {},
  };
}

storeContract("the store of the documentation", mapStoreGround, {
  oldestOfAll: true,
  listsFinished: false,
  announces: false,
  distrustsClock: false,
});

it("makes an inbox: an event that comes twice is run once", async () => {
  const { publicKey, privateKey } = createTestKeys();
  const receiver = createReceiver({ payments: { publicKey }, inbox: mapInbox() }).ignore("WITHDRAWAL");
  const ran: string[] = [];
  receiver.onDeposit(({ payTxnId }) => void ran.push(payTxnId));
  const duplicate = new Promise((resolve) => {
    receiver.observe(({ type }) => type === "duplicate" && resolve(type));
  });
  await receiver.start();
  const fields = callbackFields();
  const { rawBody, headers } = signPaymentCallback(fields, privateKey);
  const delivery = { method: "POST", url: "/", headers: new Headers(headers), rawBody };
  for (let copies = 0; copies < 2; copies++) {
    expect((await receiver.payments.receive(delivery)).status).toBe(200);
  }
  await duplicate;
  expect(await receiver.close({ graceMs: 5_000 })).toEqual({ unfinished: 0 });
  expect(ran).toEqual([fields.payTxnId]);
});
