/** A process that has nothing but a receiver: no server, no timer that keeps it alive. It prints what it comes to. */
import { createReceiver, memoryInbox } from "@payhooks/core";
import { sqliteInbox } from "@payhooks/core/sqlite";
import { callbackFields, createTestKeys, signPaymentCallback } from "@payhooks/core/testing";
import { deliveryOf } from "../receiving.ts";

const [file = ""] = process.argv.slice(2);
const { publicKey, privateKey } = createTestKeys();
const receiver = createReceiver({
  payments: { publicKey },
  inbox: file === "" ? memoryInbox() : sqliteInbox(file),
});
receiver.ignore("WITHDRAWAL").onDeposit(async ({ payTxnId }) => {
  await new Promise((resolve) => setTimeout(resolve, 300).unref());
  console.log(`handled ${payTxnId}`);
});
await receiver.start();
console.log("started");
const reply = await receiver.payments.receive(
  deliveryOf(signPaymentCallback(callbackFields({ payTxnId: "one" }), privateKey)),
);
console.log(`answered ${reply.status}`);
// The handler is called in one of the next turns; nothing but the close waits for it.
setTimeout(() => {
  void receiver.close().then(({ unfinished }) => console.log(`closed, ${unfinished} unfinished`));
}, 50);
