import { createReceiver, memoryInbox } from "@payhooks/core";
import { callbackFields, createTestKeys, fakeClock, signPaymentCallback } from "@payhooks/core/testing";
import supertest from "supertest";
import { expect, it } from "vitest";
import { createApp } from "../src/app.ts";
import { MemoryOrders, registerShop } from "../src/shop.ts";

const keys = createTestKeys();

it("acknowledges a callback, and books it when its order is there an hour later", async () => {
  const clock = fakeClock();
  const receiver = createReceiver({
    payments: { publicKey: keys.publicKey },
    inbox: memoryInbox({ clock }),
    clock,
  });
  const orders = new MemoryOrders();
  registerShop(receiver, orders);

  const fields = callbackFields({ referenceId: "order-1" }, clock.now());
  const { headers, rawBody } = signPaymentCallback(fields, keys.privateKey);
  await supertest(createApp(receiver))
    .post("/callbacks/pay")
    .set(headers)
    .send(rawBody.toString()) // the text: of bytes supertest would make JSON, which nobody has signed
    .expect(200, { received: true });

  orders.open("order-1");
  await clock.advance("1h");
  expect(orders.booked).toEqual(["10.500000 for order-1"]);
  await receiver.close();
});
